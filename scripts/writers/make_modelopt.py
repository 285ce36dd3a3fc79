#!/usr/bin/env python3
"""Goldens of NVIDIA ModelOpt: quantized by modelopt.torch.quantization, saved by its export_hf_checkpoint.

Read back by ModelOpt's own tensor classes. It has none for the INT4 of AWQ as exported: there the weights are what its
quantizers made of the float weights before the export, rounded to the codes and scales that were exported.

Needs from PyPI: torch, safetensors, transformers, nvidia-modelopt, omegaconf, pulp, scipy, requests, accelerate.
"""

import copy
import json
import pathlib
import tempfile

import modelopt.torch.quantization as mtq
import torch
from modelopt.torch.export import export_hf_checkpoint
from modelopt.torch.quantization.qtensor import FP8QTensor, MXFP8QTensor, NVFP4QTensor
from safetensors.torch import load_file

import golden

CASES = {
    "fp8": mtq.FP8_DEFAULT_CFG, "nvfp4": mtq.NVFP4_DEFAULT_CFG, "w4a16_nvfp4": mtq.W4A16_NVFP4_CFG,
    "nvfp4_awq": mtq.NVFP4_AWQ_LITE_CFG, "int4_awq": mtq.INT4_AWQ_CFG, "w4a8_awq": mtq.W4A8_AWQ_BETA_CFG,
    "mxfp8": mtq.MXFP8_DEFAULT_CFG, "fp8_pb_wo": mtq.FP8_2D_BLOCKWISE_WEIGHT_ONLY_CFG,
    "fp8_pc_pt": mtq.FP8_PER_CHANNEL_PER_TOKEN_CFG, "int8_sq": mtq.INT8_SMOOTHQUANT_CFG,
    "mxfp4": mtq.MXFP4_DEFAULT_CFG,
}


def dequantize(case, tensors, layer, before):
    t = {k[len(layer) + 1:]: v for k, v in tensors.items() if k.startswith(layer + ".")}
    weight, scale = t["weight"], t.get("weight_scale")
    if "nvfp4" in case:
        shape = (weight.shape[0], weight.shape[1] * 2)
        return NVFP4QTensor(shape, torch.float32, weight).dequantize(
            torch.float32, scale=scale, double_scale=t["weight_scale_2"], block_sizes={-1: 16})
    if case == "mxfp8":
        return MXFP8QTensor(weight.shape, torch.float32, weight).dequantize(torch.float32, scale=scale)
    if case.startswith("fp8"):
        sizes = {-1: 128, -2: 128} if "pb_wo" in case else {}
        if case == "fp8_pc_pt":
            scale = scale[:, None]
        return FP8QTensor(weight.shape, torch.float32, weight).dequantize(
            torch.float32, scale=scale.reshape(weight.shape[0] // 128, -1) if sizes else scale, block_sizes=sizes or None)
    return before[layer]


def main():
    args = golden.arguments(__doc__)
    golden.print_versions("transformers", "nvidia-modelopt")
    for case, config in CASES.items():
        if args.only not in case:
            continue
        block = case == "fp8_pb_wo"
        shape = dict(hidden=256, heads=2, head_dim=64, intermediate=32) if block else {}
        layers = [golden.O_PROJ if block else golden.DOWN_PROJ]
        model = golden.llama(args.source, torch.float32, **shape)
        try:
            config = copy.deepcopy(config)
            rules = config["quant_cfg"]
            off = [f"*{p}_proj*" for p in ("q", "k", "v", "gate", "up", *(["down"] if block else []))] + ["*lm_head*"]
            if isinstance(rules, list):
                rules += [{"quantizer_name": name, "enable": False} for name in off]
            else:
                rules |= {name: {"enable": False} for name in off}
            mtq.quantize(model, config, lambda m: [m(row[None]) for row in golden.token_ids()])
            modules = dict(model.named_modules())
            before = {}
            for name in layers if case.startswith(("int", "w4a8")) else []:
                quantizer = modules[name].weight_quantizer
                first = quantizer[0] if case == "w4a8_awq" else quantizer  # the second one rounds to the fp8 of the product
                before[name] = first(modules[name].weight).detach().clone()
            with tempfile.TemporaryDirectory() as saved:
                export_hf_checkpoint(model, export_dir=saved)
                files = {p.name: json.loads(p.read_text()) for p in pathlib.Path(saved).glob("*.json")}
                tensors = golden.keep(load_file(pathlib.Path(saved) / "model.safetensors"), layers)
            expected = {layer: dequantize(case, tensors, layer, before) for layer in layers}
        except Exception as error:  # a scheme that this version of the writer refuses, or that needs a GPU
            print(f"{case}: not written: {type(error).__name__}: {error}")
            if args.only:
                raise
            continue
        side = [("hf_quant_config.json", files["hf_quant_config.json"])] if "hf_quant_config.json" in files else []
        golden.write(args.out / f"modelopt_{case}", files["config.json"], tensors, expected, side)


main()
