#!/usr/bin/env python3
"""Goldens of AMD Quark: quantized by its ModelQuantizer, saved by export_safetensors, dequantised by the QParamsLinear of
its import_model_from_safetensors.

Needs from PyPI: torch, safetensors, transformers, amd-quark, scipy, ninja, joblib, zstandard, evaluate (and a C++ compiler).
"""

import json
import pathlib
import tempfile

import torch
from quark.torch import ModelQuantizer, export_safetensors, import_model_from_safetensors
from quark.torch.quantization.config import config as q
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

import golden

FP8, FP8_ROWS = q.FP8E4M3PerTensorSpec().to_quantization_spec(), q.FP8E4M3PerChannelSpec(ch_axis=0).to_quantization_spec()
TOKEN_FP8 = q.FP8E4M3PerChannelSpec(ch_axis=1, is_dynamic=True).to_quantization_spec()
INT8 = q.Int8PerChannelSpec(ch_axis=0, symmetric=True).to_quantization_spec()
STATIC = dict(scale_type="float", round_method="half_even", is_dynamic=False)
INT8_INPUT = q.Int8PerTensorSpec(symmetric=True, observer_method="min_max", **STATIC).to_quantization_spec()
INT4 = q.Int4PerGroupSpec(ch_axis=1, group_size=32, symmetric=True).to_quantization_spec()
UINT4 = q.Uint4PerGroupSpec(ch_axis=1, group_size=32, symmetric=False, **STATIC).to_quantization_spec()
MXFP4 = q.OCP_MXFP4Spec(ch_axis=-1, is_dynamic=False).to_quantization_spec()
MXFP4_INPUT = q.OCP_MXFP4Spec(ch_axis=-1, is_dynamic=True).to_quantization_spec()
MXFP6 = q.OCP_MXFP6E3M2Spec(ch_axis=-1, is_dynamic=False).to_quantization_spec()
CASES = {  # weight, input, packing
    "fp8": (FP8, FP8, "reorder"), "fp8_rows": (FP8_ROWS, TOKEN_FP8, "reorder"), "int8": (INT8, INT8_INPUT, "reorder"),
    "int4_reorder": (INT4, None, "reorder"), "int4_order": (INT4, None, "order"), "uint4_reorder": (UINT4, None, "reorder"),
    "uint4_order": (UINT4, None, "order"), "mxfp4": (MXFP4, MXFP4_INPUT, "reorder"), "mxfp4_weights": (MXFP4, None, "reorder"),
    "mxfp6_weights": (MXFP6, None, "reorder"),
}


def main():
    args = golden.arguments(__doc__)
    golden.print_versions("transformers", "amd-quark")
    layers = [golden.DOWN_PROJ]
    for name, (weight, inputs, packing) in CASES.items():
        if args.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                model = golden.saved_llama(folder + "/float", args.source, torch.float32)
                config = q.QConfig(global_quant_config=q.QLayerConfig(weight=weight, input_tensors=inputs),
                                   exclude=["lm_head", *(f"*.{p}_proj" for p in ("q", "k", "v", "gate", "up"))])
                quantizer = ModelQuantizer(config)
                model = quantizer.freeze(quantizer.quantize_model(model, [row[None] for row in golden.token_ids()]))
                export_safetensors(model, folder + "/quantized", pack_method=packing)
                config = json.loads(pathlib.Path(folder, "quantized/config.json").read_text())
                tensors = golden.keep(load_file(folder + "/quantized/model.safetensors"), layers)
                fresh = AutoModelForCausalLM.from_pretrained(folder + "/float", dtype=torch.float32)
                modules = dict(import_model_from_safetensors(fresh, folder + "/quantized").named_modules())
                expected = {layer: modules[layer]._get_qweight(modules[layer].weight).detach() for layer in layers}
            except Exception as error:  # a scheme that this version of the writer refuses, or that needs a GPU
                print(f"{name}: not written: {type(error).__name__}: {error}")
                if args.only:
                    raise
                continue
        golden.write(args.out / f"quark_{name}", config, tensors, expected)


main()
