#!/usr/bin/env python3
"""Goldens of AutoRound: quantized (by rounding to nearest, iters=0) and saved by it, dequantised by its own linear layers.

Needs from PyPI: torch, safetensors, transformers, auto-round, py-cpuinfo, accelerate, datasets.
"""

import json
import pathlib
import tempfile

import torch
from auto_round import AutoRound
from auto_round_extension.torch.qlinear_torch import QuantLinear as ZerosAsStored
from auto_round_extension.torch.qlinear_torch_zp import QuantLinear as ZerosMinusOne
from safetensors.torch import load_file

import golden

CASES = {
    "w4_g32": (dict(bits=4, group_size=32, sym=True), "auto_round"),
    "w4_g32_asym": (dict(bits=4, group_size=32, sym=False), "auto_round"),
    "w8_g32": (dict(bits=8, group_size=32, sym=True), "auto_round"),
    "w2_g32": (dict(bits=2, group_size=32, sym=True), "auto_round"),
    "w3_g32": (dict(bits=3, group_size=32, sym=True), "auto_round"),
    "gptq_w4_g32": (dict(bits=4, group_size=32, sym=True), "auto_gptq"),
}


def dequantize(tensors, layer, quantization):
    t = {k[len(layer) + 1:]: v for k, v in tensors.items() if k.startswith(layer + ".")}
    bits, group = quantization["bits"], quantization["group_size"]
    packing = quantization.get("packing_format", "")
    if "awq" in packing or quantization["quant_method"] == "awq":
        from auto_round.export.export_to_awq.utils import dequantize_gemm
        return dequantize_gemm(t["qweight"], t["qzeros"], t["scales"], bits, group).T.contiguous()
    gptq = "auto_gptq" in packing or quantization["quant_method"] == "gptq"
    k, n = t["qweight"].shape[0] * 32 // bits, t["scales"].shape[1]
    linear = (ZerosMinusOne if gptq else ZerosAsStored)(bits, group, k, n, False)
    for name in ("qweight", "qzeros", "scales"):
        setattr(linear, name, t[name].clone())
    return linear.eval()(torch.eye(k)).T.half()  # its weights are fp16; this product is exact


def main():
    args = golden.arguments(__doc__)
    golden.print_versions("transformers", "auto-round")
    layers = [golden.DOWN_PROJ]
    for name, (case, form) in CASES.items():
        if args.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            model = golden.saved_llama(folder + "/float", args.source, torch.float16, hidden=64, head_dim=32, intermediate=128)
            try:
                rounder = AutoRound(model, golden.tokenizer(), iters=0, disable_opt_rtn=True, device_map="cpu",
                                    enable_torch_compile=False, **case)
                rounder.quantize_and_save(folder + "/quantized", format=form)
                saved = next(pathlib.Path(folder, "quantized").rglob("config.json")).parent
                config = json.loads((saved / "config.json").read_text())
                tensors = {}
                for file in saved.glob("*.safetensors"):
                    tensors |= golden.keep(load_file(file), layers)
                expected = {layer: dequantize(tensors, layer, config["quantization_config"]) for layer in layers}
            except Exception as error:  # a scheme that this version of the writer refuses
                print(f"{name}: not written: {type(error).__name__}: {error}")
                if args.only:
                    raise
                continue
        golden.write(args.out / f"autoround_{name}", config, tensors, expected)


main()
