#!/usr/bin/env python3
"""Goldens of compressed-tensors 0.12: what later versions no longer write. Columns assigned to groups by an index tensor
(actorder "group", gone since 2026-08) and codes of 3, 5, 6 and 7 bits that never cross a word (dense since 2026-06).

Packed by the library's pack_to_int32, read back by its unpack_from_int32 and dequantize. The index is a fixed shuffle of
equal groups, as calibration gives.

Needs from PyPI: torch, safetensors, compressed-tensors==0.12.2.
"""

import torch
from compressed_tensors.compressors.quantized_compressors.pack_quantized import pack_to_int32, unpack_from_int32
from compressed_tensors.quantization import QuantizationArgs
from compressed_tensors.quantization.lifecycle.forward import dequantize, quantize
from compressed_tensors.quantization.utils import calculate_qparams

import golden

CASES = {"int4_actorder": (4, True, True), "int4_asym_actorder": (4, False, True), "int3": (3, True, False),
         "int3_asym": (3, False, False), "int5": (5, True, False), "int6_asym": (6, False, False), "int7": (7, True, False)}
GROUP = 32


def main():
    args = golden.arguments(__doc__)
    golden.print_versions("compressed-tensors")
    for name, (bits, symmetric, actorder) in CASES.items():
        if args.only not in name:
            continue
        tensors, expected = {}, {}
        settings = dict(num_bits=bits, type="int", strategy="group", group_size=GROUP, symmetric=symmetric)
        if actorder:
            settings["actorder"] = "group"
        scheme = QuantizationArgs(**settings)
        for layer, n, k in ((golden.DOWN_PROJ, 20, 160),):
            w = golden.weight(args.source, ".".join(layer.split(".")[-2:]), n, k)
            index = torch.arange(k) // GROUP
            if actorder:
                index = index[torch.randperm(k, generator=torch.Generator().manual_seed(5))]
            grouped = w[:, torch.argsort(index, stable=True)].reshape(n, -1, GROUP)
            scale, zero = calculate_qparams(grouped.amin(2), grouped.amax(2), scheme)
            more = {"g_idx": index.int()} if actorder else {}
            codes = quantize(x=w, scale=scale, zero_point=zero, args=scheme, dtype=torch.int8, **more)
            t = {"weight_packed": pack_to_int32(codes, bits), "weight_shape": torch.tensor(w.shape), "weight_scale": scale}
            if not symmetric:
                t["weight_zero_point"] = pack_to_int32(zero.to(torch.int8), bits, packed_dim=0)
                zero = unpack_from_int32(t["weight_zero_point"], bits, zero.shape, packed_dim=0)
            if actorder:
                t["weight_g_idx"] = index.int()
            unpacked = unpack_from_int32(t["weight_packed"], bits, w.shape)
            expected[layer] = dequantize(x_q=unpacked, scale=scale, zero_point=zero, args=scheme, **more)
            tensors |= {f"{layer}.{key}": value for key, value in t.items()}
        group = {"targets": ["Linear"], "weights": scheme.model_dump(mode="json", exclude_none=True), "input_activations": None}
        config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 16, "intermediate_size": 160,
                  "num_hidden_layers": 1, "num_attention_heads": 1, "torch_dtype": "float32", "quantization_config":
                  {"quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed",
                   "config_groups": {"group_0": group}, "ignore": ["lm_head"]}}
        golden.write(args.out / f"compressed_tensors_0_12_{name}", config, tensors, expected)


main()
