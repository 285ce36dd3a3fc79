#!/usr/bin/env python3
"""Reads a checkpoint that `gearshift quantize` wrote with the Python library compressed-tensors, and compares.

    check_with_compressed_tensors.py QUANTIZED_DIR ORIGINAL_DIR

For every module of QUANTIZED_DIR that the library's config classes assign a scheme, its compressor decompresses the stored
tensors. They are compared with a decoder written here from the definition of the format alone (numpy, no code shared with
the library or with Gearshift), and with the original weights; every other tensor must be unchanged. Where the checkpoint is a whole BERT model, transformers loads it and runs one sentence beside the float model.

The decompressed weights must be equal, in the type in which the library returns them (bf16 for 4-bit floats). In fp32 one
difference of order is left: the library multiplies a code by scale / global, the definition divides code * scale by global;
at most one unit in the last place.

Needs torch, safetensors, compressed-tensors and transformers from PyPI. Result with torch 2.15.0, compressed-tensors 0.20.1,
transformers 5.24.0 and safetensors 0.8.0, on all-MiniLM-L6-v2 with --scheme 'encoder.layer.*.dense=NVFP4' --scheme
'encoder.layer.*.attention.*=FP8_DYNAMIC':
"36 modules, 0 differ;
in fp32 at most 1 unit(s) in the last place; 0 copied tensors changed";
transformers loads it as BertModel, and the embedding of one sentence has cosine 0.9717 with the float model's.
"""

import json
import pathlib
import sys

import numpy as np
import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationConfig
from compressed_tensors.quantization.lifecycle.forward import dequantize
from compressed_tensors.utils.match import match_name
from safetensors import safe_open

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def read(directory):
    tensors = {}
    for file in sorted(pathlib.Path(directory).glob("*.safetensors")):
        with safe_open(file, "pt") as f:
            for name in f.keys():
                tensors[name] = f.get_tensor(name)
    return tensors


def e4m3(codes):
    c = codes.view(torch.uint8).numpy().astype(np.int64)
    exponent, mantissa = c >> 3 & 15, c & 7
    value = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent - 10))
    return (np.where(c & 128, -value, value)).astype(np.float32)


def spread(scale, n, k):
    """Scales as a matrix that broadcasts over [n, k]."""
    if scale.size == 1:
        return scale.reshape(1, 1)
    rows, cols = scale.shape
    block = 128 if rows not in (1, n) else 1
    scale = np.repeat(scale, block, 0)[:n]
    return scale if cols == 1 else np.repeat(scale, -(-k // cols) if k % cols == 0 else 128, 1)[:, :k]


def decode(t, shape):
    """The weights of one module by the definition of its format, in float32."""
    n, k = shape
    if "weight_packed" in t and t["weight_packed"].dtype == torch.uint8:
        packed = t["weight_packed"].numpy()
        code = E2M1[np.stack([packed & 15, packed >> 4], -1).reshape(n, k)]
        if "weight_global_scale" in t:
            return code * spread(e4m3(t["weight_scale"]), n, k) / t["weight_global_scale"].numpy()
        return code * spread(np.exp2(t["weight_scale"].numpy().astype(np.float32) - 127), n, k)
    if t["weight_scale"].dtype == torch.uint8:
        return e4m3(t["weight"]) * spread(np.exp2(t["weight_scale"].numpy().astype(np.float32) - 127), n, k)
    scale = spread(t["weight_scale"].float().numpy(), n, k)
    if "weight_packed" in t:
        bits = np.unpackbits(t["weight_packed"].numpy().view(np.uint8), axis=1, bitorder="little")
        q = np.packbits(bits.reshape(n, -1, 4), axis=2, bitorder="little")[:, :k, 0].astype(np.float32) - 8
        if "weight_zero_point" in t:
            words = t["weight_zero_point"].numpy().astype(np.uint32)
            zero = np.stack([words >> 4 * i & 15 for i in range(8)], 1).reshape(-1, words.shape[1])[:n].astype(np.float32) - 8
            q = q - spread(zero, n, k)
        return q * scale
    if t["weight"].dtype == torch.int8:
        return t["weight"].numpy().astype(np.float32) * scale
    return e4m3(t["weight"]) * scale


def scheme_of(config, name):
    """As the library does: ignore first, then exact names, then patterns, then classes."""
    if any(match_name(name, i) for i in config.ignore or []):
        return None
    groups = list(config.config_groups.values())
    for kind in (lambda t: t == name, lambda t: t.startswith("re:") and match_name(name, t), lambda t: t == "Linear"):
        for group in groups:
            if any(kind(t) for t in group.targets):
                return group
    return None


def main():
    directory, original = sys.argv[1], read(sys.argv[2])
    raw = json.loads((pathlib.Path(directory) / "config.json").read_text())
    config = QuantizationConfig.model_validate(raw["quantization_config"])
    tensors = read(directory)
    modules = sorted({n.rsplit(".", 1)[0] for n in tensors if n.endswith(".weight_scale")})
    failures, last_place = 0, 0
    for module in modules:
        local = {n[len(module) + 1:]: t for n, t in tensors.items() if n.startswith(module + ".") and "." not in n[len(module) + 1:]}
        local.pop("bias", None)
        shape = tuple(original[module + ".weight"].shape)
        scheme = scheme_of(config, module)
        format_name = str(getattr(scheme.format, "value", scheme.format))
        compressor = BaseCompressor.get_value_from_registry(format_name)
        library = compressor.decompress(dict(local), scheme)["weight"]
        ours = torch.from_numpy(decode(local, shape))
        if not torch.equal(library.float(), ours.to(library.dtype).float()):
            differ = (library.float() != ours.to(library.dtype).float()).float().mean().item()
            print(f"DIFFERS {module}: {differ:.2%} of the elements")
            failures += 1
        if "weight_global_scale" in local:
            from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
            codes = unpack_fp4_from_uint8(local["weight_packed"], *shape, dtype=torch.float32)
            wide = dequantize(codes, local["weight_scale"].float(), None, scheme.weights, torch.float32, local["weight_global_scale"])
            ulp = ((wide.view(torch.int32) & 0x7FFFFFFF) - (ours.view(torch.int32) & 0x7FFFFFFF)).abs().max().item()
            last_place = max(last_place, ulp)
        w = original[module + ".weight"].float()
        error = ((library.float() - w).norm() / w.norm()).item()
        print(f"{module:45s} {format_name:22s} {str(tuple(shape)):14s} relative error {error:.4f}")
    made = {module + ".weight" for module in modules}
    copied = [n for n in original if n not in made and not (n in tensors and torch.equal(original[n], tensors[n]))]
    print(f"{len(modules)} modules, {failures} differ; in fp32 at most {last_place} unit(s) in the last place; "
          f"{len(copied)} copied tensors changed")
    if "embeddings.word_embeddings.weight" in tensors:
        load_whole(directory, original)
    sys.exit(1 if failures or copied or last_place > 1 else 0)


def load_whole(directory, original):
    """transformers reads the directory as any user would; tokens in, hidden states out, against the float model."""
    from transformers import AutoConfig, AutoModel
    quantized = AutoModel.from_pretrained(directory, dtype=torch.bfloat16).eval()
    plain_config = AutoConfig.from_pretrained(directory)
    del plain_config.quantization_config
    plain = AutoModel.from_config(plain_config, dtype=torch.float32).eval()
    plain.load_state_dict({n: t for n, t in original.items() if "position_ids" not in n}, strict=False)
    tokens = torch.tensor([[101, 7592, 2088, 2003, 1037, 3231, 102]])
    with torch.no_grad():
        a, b = quantized(tokens)[0].float().mean(1), plain(tokens)[0].mean(1)
    print(f"transformers: {type(quantized).__name__} loaded; cosine of its sentence embedding with the float model's "
          f"{torch.nn.functional.cosine_similarity(a, b).item():.4f}")


main()
