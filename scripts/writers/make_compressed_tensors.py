#!/usr/bin/env python3
"""Goldens of compressed-tensors, written by llm-compressor's oneshot and read back by compressed-tensors' compressors.

Needs from PyPI: torch, safetensors, transformers, compressed-tensors, llmcompressor, datasets, accelerate.
"""

import json
import pathlib
import tempfile

import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationConfig, QuantizationScheme, preset_name_to_scheme
from llmcompressor import oneshot
from llmcompressor.modifiers.gptq import GPTQModifier
from llmcompressor.modifiers.quantization import QuantizationModifier
from safetensors.torch import load_file
from torch.utils.data import DataLoader

import golden


def integers(bits, group=None, symmetric=True, activations=None, **more):
    weights = {"num_bits": bits, "type": "int", "symmetric": symmetric, "strategy": "group" if group else "channel", **more}
    if group:
        weights["group_size"] = group
    return {"weights": weights, "input_activations": activations}


TOKEN_INT8 = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "token", "dynamic": True}
STATIC_INT8 = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "tensor", "dynamic": False}
STATIC_INT8_ASYM = {**STATIC_INT8, "symmetric": False}
CASES = {
    "fp8_tensor": "FP8", "fp8_channel": "FP8_DYNAMIC", "fp8_block": "FP8_BLOCK",
    "int8_dynamic": integers(8, activations=TOKEN_INT8), "int8_static": integers(8, activations=STATIC_INT8),
    "int8_asym": integers(8, symmetric=False, activations=STATIC_INT8_ASYM),
    "int4_g128": "W4A16", "int4_g128_asym": "W4A16_ASYM", "int4_g32": integers(4, 32),
    "int4_g32_asym": integers(4, 32, False),
    "int4_actorder_static": integers(4, 32, actorder="weight"),
    "int8_packed": "W8A16", "int2_g32": integers(2, 32), "int3_g32": integers(3, 32), "int5_g32": integers(5, 32),
    "int6_g32_asym": integers(6, 32, False), "int7_channel": integers(7),
    "w4a8_int": integers(4, 128, activations=TOKEN_INT8),
    "nvfp4": "NVFP4", "nvfp4a16": "NVFP4A16", "mxfp4": "MXFP4", "mxfp8": "MXFP8",
}
FP32_MODEL = {"fp8_tensor", "int8_dynamic", "int4_g32_asym", "int6_g32_asym", "nvfp4a16"}  # the others: bf16


def quantize(args, name, case, directory):
    shape = dict(hidden=136, heads=2, head_dim=72, intermediate=32) if name == "fp8_block" else {}
    dtype = torch.float32 if name in FP32_MODEL else torch.bfloat16
    model = golden.saved_llama(directory + "/float", args.source, dtype, **shape)
    layers = [golden.O_PROJ] if shape else [golden.O_PROJ, golden.DOWN_PROJ]
    if isinstance(case, str):
        groups = {"group_0": preset_name_to_scheme(case, layers)}
    else:
        groups = {"group_0": QuantizationScheme(targets=layers, **case)}
    actorder = isinstance(case, dict) and "actorder" in case["weights"]
    modifier = (GPTQModifier if actorder else QuantizationModifier)(config_groups=groups, ignore=["lm_head"])
    ids = golden.token_ids()
    data = DataLoader([{"input_ids": row, "attention_mask": torch.ones_like(row)} for row in ids], batch_size=1)
    oneshot(model=model, recipe=modifier, dataset=data, processor=golden.tokenizer(),
            num_calibration_samples=len(ids), max_seq_length=ids.shape[1])
    model.save_pretrained(directory, save_compressed=True)
    return layers[-1:]  # one is enough to keep


def main():
    args = golden.arguments(__doc__)
    golden.print_versions("transformers", "compressed-tensors", "llmcompressor")
    for name, case in CASES.items():
        if args.only not in name:
            continue
        with tempfile.TemporaryDirectory() as saved:
            try:
                layers = quantize(args, name, case, saved)
            except Exception as error:  # a scheme that this version of the writer refuses
                print(f"{name}: not written: {type(error).__name__}: {error}")
                continue
            config = json.loads((pathlib.Path(saved) / "config.json").read_text())
            tensors = golden.keep(load_file(pathlib.Path(saved) / "model.safetensors"), layers)
        quantization = QuantizationConfig.model_validate(
            {k: v for k, v in config["quantization_config"].items() if k not in ("sparsity_config", "transform_config", "version")})
        scheme, = quantization.config_groups.values()
        compressor = BaseCompressor.get_value_from_registry(scheme.format or quantization.format)
        expected = {}
        for layer in layers:
            state = {k[len(layer) + 1:]: t for k, t in tensors.items() if k.startswith(layer + ".")}
            expected[layer] = compressor.decompress(state, scheme)["weight"]
        golden.write(args.out / f"compressed_tensors_{name}", config, tensors, expected)


main()
