#!/usr/bin/env python3
"""Goldens that no writer could be asked for here, made from the definition of their formats with numpy and ml-dtypes alone.

GPTQ (versions 1 and 2, symmetric and not, with activation order, 2, 3, 4 and 8 bits), fp8 with blocks that do not divide
the matrix, and AMD Quark (fp8, int8, int4, uint4, MXFP4, MXFP6). Needs from PyPI: numpy, ml-dtypes, safetensors.
"""

import argparse
import json
import pathlib

import ml_dtypes
import numpy as np
from safetensors.numpy import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPTQ = {  # bits, group (-1: a row), symmetric, activation order, version
    "v1_4bit": (4, 32, True, False, 1), "v1_4bit_actorder": (4, 32, True, True, 1),
    "v1_4bit_asym": (4, 32, False, False, 1), "v1_4bit_asym_actorder": (4, 32, False, True, 1),
    "v2_4bit": (4, 32, True, False, 2), "v2_4bit_asym": (4, 32, False, False, 2), "v2_4bit_asym_actorder": (4, 32, False, True, 2),
    "v1_4bit_whole_row": (4, -1, True, False, 1), "v1_8bit": (8, 32, True, False, 1), "v1_3bit": (3, 32, True, False, 1),
    "v2_3bit_asym": (3, 32, False, False, 2), "v1_2bit": (2, 32, True, False, 1),
}
QUARK = {"fp8": ("fp8", "reorder"), "fp8_rows": ("fp8_rows", "reorder"), "int8": ("int8", "reorder"),
         "mxfp4": ("mxfp4", "reorder"), "mxfp6_e3m2": ("mxfp6_e3m2", "reorder"), "mxfp6_e2m3": ("mxfp6_e2m3", "reorder"),
         "int4_reorder": ("int4", "reorder"), "int4_order": ("int4", "order"), "uint4_reorder": ("uint4", "reorder"),
         "uint4_order": ("uint4", "order")}
LAYER = "model.layers.0.mlp.down_proj"


def pack(codes, bits):
    """[rows, n] codes -> int32 words along the first axis: a stream of bits per column, lowest first."""
    stream = ((codes[:, None, :] >> np.arange(bits)[None, :, None]) & 1).reshape(-1, codes.shape[1])
    words = stream.reshape(-1, 32, codes.shape[1]).astype(np.uint64) << np.arange(32, dtype=np.uint64)[None, :, None]
    return words.sum(1).astype(np.uint32).view(np.int32)


def gptq(w, bits, group, symmetric, actorder, version):
    n, k = w.shape
    size = k if group < 0 else group
    index = np.arange(k, dtype=np.int32) // size
    if actorder:
        index = np.random.default_rng(11).permutation(index)
    top = 2**bits - 1
    groups = np.stack([w[:, index == g] for g in range(k // size)])  # [G, N, size]
    low, high = np.minimum(groups.min(2), 0), np.maximum(groups.max(2), 0)
    if symmetric:
        scale = 2 * np.maximum(high, -low) / top
        zero = np.full(scale.shape, 2**(bits - 1))
    else:
        scale = (high - low) / top
        zero = np.clip(np.rint(-low / scale), 1 if version == 1 else 0, top).astype(int)  # version 1 cannot say 0
    scale = scale.astype(np.float16)
    codes = np.clip(np.rint(w.T / scale[index].astype(np.float64)) + zero[index], 0, top).astype(np.int64)  # [K, N]
    stored = zero.astype(np.int64) - (1 if version == 1 else 0)
    tensors = {"qweight": pack(codes, bits), "qzeros": pack(stored.T.copy(), bits).T.copy(), "scales": scale, "g_idx": index}
    return tensors, ((codes - zero[index]) * scale[index].astype(np.float64)).T


def fp8_blocks(w, rows, columns):
    n, k = w.shape
    scale = np.empty((-(-n // rows), -(-k // columns)), np.float32)
    codes, values = np.empty(w.shape, ml_dtypes.float8_e4m3fn), np.empty(w.shape, np.float64)
    for i in range(scale.shape[0]):
        for j in range(scale.shape[1]):
            block = np.s_[i * rows:(i + 1) * rows, j * columns:(j + 1) * columns]
            scale[i, j] = np.abs(w[block]).max() / 448
            codes[block] = np.clip(w[block] / scale[i, j], -448, 448).astype(ml_dtypes.float8_e4m3fn)
            values[block] = codes[block].astype(np.float64) * scale[i, j]
    return {"weight": codes, "weight_scale_inv": scale}, values


def words_along_rows(codes, interleaved):
    """[rows, N] 4-bit codes -> int32 [rows, N/8]; interleaved: nibble i holds column 0 2 4 6 1 3 5 7 of its eight."""
    eights = codes.astype(np.uint32).reshape(codes.shape[0], -1, 8) & 15
    if interleaved:
        eights = eights[:, :, [0, 2, 4, 6, 1, 3, 5, 7]]
    return np.bitwise_or.reduce(eights << (4 * np.arange(8, dtype=np.uint32)), axis=2).view(np.int32)


def quark(w, kind, packing):
    """Tensors, weights and the weight's specification."""
    n, k = w.shape
    if kind in ("fp8", "fp8_rows", "int8"):
        amax = np.abs(w).max(axis=None if kind == "fp8" else 1)
        scale = (amax / (127.5 if kind == "int8" else 448)).astype(np.float32)
        ratio = w / (scale if kind == "fp8" else scale[:, None])
        if kind == "int8":
            codes = np.clip(np.rint(ratio), -128, 127).astype(np.int8)
        else:
            codes = np.clip(ratio, -448, 448).astype(ml_dtypes.float8_e4m3fn)
        values = codes.astype(np.float64) * (scale if kind == "fp8" else scale[:, None])
        spec = {"dtype": "int8" if kind == "int8" else "fp8_e4m3", "ch_axis": 0,
                "qscheme": "per_tensor" if kind == "fp8" else "per_channel"}
        return {"weight": codes, "weight_scale": scale}, values, spec
    groups = w.reshape(n, k // 32, 32)
    if kind in ("mxfp4", "mxfp6_e3m2", "mxfp6_e2m3"):
        dtype, top = {"mxfp4": (ml_dtypes.float4_e2m1fn, 2), "mxfp6_e3m2": (ml_dtypes.float6_e3m2fn, 4),
                      "mxfp6_e2m3": (ml_dtypes.float6_e2m3fn, 2)}[kind]
        exponent = np.floor(np.log2(np.abs(groups).max(2))) - top
        limit = float(ml_dtypes.finfo(dtype).max)
        codes = np.clip(groups / np.exp2(exponent)[..., None], -limit, limit).astype(dtype)
        values = (codes.astype(np.float64) * np.exp2(exponent)[..., None]).reshape(n, k)
        raw = codes.view(np.uint8).reshape(n, k).astype(np.uint32)
        if kind == "mxfp4":
            packed = (raw[:, 0::2] | raw[:, 1::2] << 4).astype(np.uint8)
        else:  # four codes in three bytes, the first one lowest
            fours = raw[:, 0::4] | raw[:, 1::4] << 6 | raw[:, 2::4] << 12 | raw[:, 3::4] << 18
            packed = np.stack([fours & 255, fours >> 8 & 255, fours >> 16], 2).reshape(n, -1).astype(np.uint8)
        spec = {"dtype": kind.replace("mxfp", "fp"), "qscheme": "per_group", "ch_axis": -1, "group_size": 32,
                "scale_format": "e8m0"}
        return {"weight": packed, "weight_scale": (exponent + 127).astype(np.uint8)}, values, spec
    low, high = np.minimum(groups.min(2), 0), np.maximum(groups.max(2), 0)
    if kind == "int4":
        scale, zero, least = np.maximum(high, -low) / 7.5, np.zeros(low.shape), -8
    else:
        scale, least = (high - low) / 15, 0
        zero = np.clip(np.rint(-low / scale), 0, 15)
    scale = scale.astype(np.float32)
    codes = np.clip(np.rint(groups / scale[..., None]) + zero[..., None], least, least + 15)
    values = ((codes - zero[..., None]) * scale[..., None].astype(np.float64)).reshape(n, k)
    words = words_along_rows(codes.reshape(n, k).T.astype(np.int32), packing == "reorder")
    tensors = {"weight": words, "weight_scale": scale.T}
    if kind == "uint4":
        tensors["weight_zero_point"] = words_along_rows(zero.T.astype(np.int32), packing == "reorder")
    return tensors, values, {"dtype": kind, "qscheme": "per_group", "ch_axis": 1, "group_size": 32}


def write(directory, quantization, tensors, values):
    directory.mkdir(parents=True, exist_ok=True)
    n, k = values.shape
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": n, "intermediate_size": k,
              "num_hidden_layers": 1, "num_attention_heads": 1, "torch_dtype": "float16", "quantization_config": quantization}
    (directory / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    save_file({f"{LAYER}.{k}": np.ascontiguousarray(v) for k, v in tensors.items()}, directory / "model.safetensors")
    save_file({f"{LAYER}.w": np.ascontiguousarray(values, np.float32)}, directory / "expected.safetensors")
    print(directory.name, sum(f.stat().st_size for f in directory.iterdir()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=pathlib.Path, default=ROOT / "examples/minilm_slice/model.safetensors")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "tests/data/writers")
    args = parser.parse_args()
    print("numpy", np.__version__, "ml_dtypes", ml_dtypes.__version__)
    real = load_file(args.source)["encoder.layer.0.output.dense.weight"].astype(np.float32)
    for name, (bits, group, symmetric, actorder, version) in GPTQ.items():
        tensors, values = gptq(real[:32, :96], bits, group, symmetric, actorder, version)
        write(args.out / f"gptq_{name}_from_definition",
              {"quant_method": "gptq", "bits": bits, "group_size": group, "sym": symmetric, "desc_act": actorder, "lm_head": False,
               "checkpoint_format": "gptq" if version == 1 else "gptq_v2"}, tensors, values)
    tensors, values = fp8_blocks(real[:40, :144], 32, 64)
    write(args.out / "fp8_partial_blocks_from_definition",
          {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [32, 64]}, tensors, values)
    for name, (kind, packing) in QUARK.items():
        tensors, values, spec = quark(real[:32, :96], kind, packing)
        layer = {"weight": {**spec, "symmetric": kind != "uint4", "is_dynamic": False}, "input_tensors": None,
                 "output_tensors": None, "bias": None}
        write(args.out / f"quark_{name}_from_definition",
              {"quant_method": "quark", "global_quant_config": layer, "layer_quant_config": {}, "layer_type_quant_config": {},
               "exclude": ["lm_head"],
               "export": {"kv_cache_group": [], "pack_method": packing, "weight_format": "real_quantized"}},
              tensors, values)


main()
