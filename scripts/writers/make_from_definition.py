#!/usr/bin/env python3
"""Goldens that no writer could be asked for here, made from the definition of their formats with numpy and ml-dtypes alone.

GPTQ (versions 1 and 2, symmetric and not, with activation order, 2, 3, 4 and 8 bits) and fp8 with blocks that do not divide
the matrix. Needs from PyPI: numpy, ml-dtypes, safetensors.
"""

import argparse
import json
import pathlib

import ml_dtypes
import numpy as np
from safetensors.numpy import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPTQ = {  # bits, group (-1: a row), symmetric, activation order, version
    "v1_4bit": (4, 32, True, False, 1), "v1_4bit_actorder": (4, 32, True, True, 1), "v1_4bit_g128": (4, 128, True, False, 1),
    "v1_4bit_asym": (4, 32, False, False, 1), "v1_4bit_asym_actorder": (4, 32, False, True, 1),
    "v2_4bit": (4, 32, True, False, 2), "v2_4bit_asym": (4, 32, False, False, 2), "v2_4bit_asym_actorder": (4, 32, False, True, 2),
    "v1_4bit_whole_row": (4, -1, True, False, 1), "v1_8bit": (8, 32, True, False, 1), "v1_3bit": (3, 32, True, False, 1),
    "v2_3bit_asym": (3, 32, False, False, 2), "v1_2bit": (2, 32, True, False, 1),
}
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
        k = 256 if group == 128 else 96
        tensors, values = gptq(real[:32 if k == 96 else 16, :k], bits, group, symmetric, actorder, version)
        write(args.out / f"gptq_{name}_from_definition",
              {"quant_method": "gptq", "bits": bits, "group_size": group, "sym": symmetric, "desc_act": actorder, "lm_head": False,
               "checkpoint_format": "gptq" if version == 1 else "gptq_v2"}, tensors, values)
    tensors, values = fp8_blocks(real[:40, :144], 32, 64)
    write(args.out / "fp8_partial_blocks_from_definition",
          {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [32, 64]}, tensors, values)


main()
