#!/usr/bin/env python3
"""Makes tests/data/quantize: a slice of real weights, and what the Python library compressed-tensors writes for it.

    make_quantize_golden.py MODEL_SAFETENSORS OUT_DIR

MODEL_SAFETENSORS is that of all-MiniLM-L6-v2 (scripts/get_minilm.sh fetches it; Apache-2.0). Needs torch, safetensors and
compressed-tensors from PyPI. Run with torch 2.15.0, compressed-tensors 0.20.1, safetensors 0.8.0.

Scales and codes come from the library's own functions (calculate_qparams, generate_gparam, the compressors). Weights are
widened to float32 first, and a scale that is stored in bf16 or fp16 is rounded to that type before codes are made from it:
so every code is the nearest one to weight / stored scale. (The library alone would also round that quotient to the 16-bit
type of the weight, which moves codes that lie near a midpoint.)
"""

import json
import pathlib
import sys

import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.compressors.format import infer_module_format
from compressed_tensors.quantization import preset_name_to_scheme
from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam
from safetensors.torch import load_file, save_file

PRESETS = ["NVFP4", "NVFP4A16", "FP8_DYNAMIC", "FP8", "INT8", "W4A16", "W4A16_ASYM", "MXFP4", "MXFP8"]
INPUT_GLOBAL_SCALE = 6.0  # without calibration: activations up to 448 are in range
INPUT_SCALE = 1.0


def minmax(w, args):
    """Minima and maxima per tensor, row, group or block: what the library's observers hand to calculate_qparams."""
    n, k = w.shape
    strategy = str(getattr(args.strategy, "value", args.strategy))
    if strategy == "tensor":
        return w.min().reshape(1), w.max().reshape(1)
    if strategy == "channel":
        return w.amin(1, keepdim=True), w.amax(1, keepdim=True)
    if strategy == "block":
        bh, bw = args.block_structure
        p = torch.nn.functional.pad(w, (0, -k % bw, 0, -n % bh)).reshape(-(-n // bh), bh, -(-k // bw), bw)
        return p.amin((1, 3)), p.amax((1, 3))
    g = w.reshape(n, k // args.group_size, args.group_size)
    return g.amin(2), g.amax(2)


def quantize(weight, preset, shared_amax):
    scheme = preset_name_to_scheme(preset, ["Linear"])
    args = scheme.weights
    w = weight.float()
    state = {"weight": w}
    global_scale = None
    if preset.startswith("NVFP4"):
        global_scale = generate_gparam(-shared_amax, shared_amax)
        state["weight_global_scale"] = global_scale
        if scheme.input_activations:
            state["input_global_scale"] = torch.tensor([INPUT_GLOBAL_SCALE])
    low, high = minmax(w, args)
    scale, zero = calculate_qparams(low, high, args, global_scale)
    stored = scale
    if args.scale_dtype is None:
        stored = scale.to(weight.dtype)
        eps = torch.tensor(torch.finfo(weight.dtype).eps, dtype=weight.dtype)
        stored = torch.where(((low == 0) & (high == 0)) | (stored == 0), eps, stored)
    if not args.symmetric:  # from the scale as stored; a group of zeros has zero point 0
        zero = torch.round(torch.clamp(-8 - torch.clamp(low, max=0) / stored.float(), -8, 7))
        zero = torch.where((low == 0) & (high == 0), torch.zeros_like(zero), zero).to(torch.int8)
        state["weight_zero_point"] = zero
    state["weight_scale"] = stored.float() if args.scale_dtype is None else stored
    scheme.format = infer_module_format(torch.nn.Linear, scheme)
    out = BaseCompressor.get_value_from_registry(scheme.format.value).compress(state, scheme)
    if args.scale_dtype is None:
        out["weight_scale"] = stored
    if preset == "FP8":
        out["input_scale"] = torch.tensor([INPUT_SCALE], dtype=weight.dtype)
    return {k: v.contiguous() for k, v in out.items() if v is not None}


def config(preset_dir):
    preset_dir.mkdir(parents=True, exist_ok=True)
    text = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 128, "intermediate_size": 16,
            "num_hidden_layers": 4, "num_attention_heads": 1, "vocab_size": 8, "rope_theta": 10000.0, "torch_dtype": "float32"}
    (preset_dir / "config.json").write_text(json.dumps(text, indent=2) + "\n")


def main():
    source, out = load_file(sys.argv[1]), pathlib.Path(sys.argv[2])
    full = source["encoder.layer.0.intermediate.dense.weight"]
    base = full[:16, :128].clone()
    base[1] = 0                # a row of zeros
    base[2, 16:48] = 0         # blocks of zeros
    base[3, :32] *= 1e-6       # blocks whose scale underflows
    base[4, 0] = -0.0
    base[5, 1] = -1e-9         # rounds to negative zero
    base[6, 5] *= 40           # an outlier
    model = {}
    for layer, dtype in enumerate((torch.float32, torch.bfloat16, torch.float16)):
        model[f"model.layers.{layer}.mlp.down_proj.weight"] = base.to(dtype)
    for part, rows in (("q", (16, 24)), ("k", (24, 32)), ("v", (32, 40))):
        model[f"model.layers.3.self_attn.{part}_proj.weight"] = full[rows[0]:rows[1], 128:256].clone()
    model["model.layers.3.self_attn.q_proj.bias"] = source["encoder.layer.0.intermediate.dense.bias"][:8].clone()
    model["model.norm.weight"] = source["encoder.layer.0.output.LayerNorm.weight"][:128].clone()
    config(out / "model")
    save_file(model, out / "model" / "model.safetensors")
    block = {"model.layers.0.mlp.down_proj.weight": full[:130, 200:332].to(torch.bfloat16).contiguous()}
    config(out / "model_block")
    save_file(block, out / "model_block" / "model.safetensors")

    attention = torch.stack([model[f"model.layers.3.self_attn.{p}_proj.weight"].abs().max() for p in "qkv"]).max()
    for preset, tensors in [(p, model) for p in PRESETS] + [("FP8_BLOCK", block)]:
        result = {}
        for name, tensor in tensors.items():
            module = name.removesuffix(".weight")
            if tensor.dim() != 2:
                continue
            amax = attention if "self_attn" in name else tensor.float().abs().max()
            for suffix, value in quantize(tensor, preset, amax).items():
                result[f"{module}.{suffix}"] = value
        save_file(result, out / f"{preset}.safetensors")


main()
