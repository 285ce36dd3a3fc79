#!/usr/bin/env python3
"""Goldens of transformers: fine-grained fp8 quantized and dequantised by its Fp8Quantize and Fp8Dequantize, and gpt-oss
MXFP4 dequantised by its convert_moe_packed_tensors. The MXFP4 codes are made here by the OCP definition (floor scales,
nearest code): the kernels with which transformers makes them need a GPU.

Needs from PyPI: torch, safetensors, transformers.
"""

import types

import torch
from transformers.integrations.finegrained_fp8 import Fp8Dequantize, Fp8Quantize
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

import golden

CASES = {"fp8_block_16x32": ([16, 32], None, torch.float32, 48, 96),
         "fp8_block_ue8m0": ([32, 32], "ue8m0", torch.float32, 64, 96)}
CODES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def mxfp4(w):
    """[..., K] -> blocks [..., K/32, 16], scales [..., K/32]."""
    groups = w.reshape(*w.shape[:-1], -1, 32)
    amax = groups.abs().amax(-1)
    exponent = torch.where(amax > 0, torch.floor(torch.log2(amax)) - 2, torch.zeros_like(amax)).clamp(-127, 127)
    scaled = groups / torch.exp2(exponent)[..., None]
    code = (scaled.abs().clamp(max=6)[..., None] - CODES).abs().argmin(-1) + 8 * (scaled < 0)
    return (code[..., 0::2] + 16 * code[..., 1::2]).to(torch.uint8), (exponent + 127).to(torch.uint8)


def main():
    args = golden.arguments(__doc__)
    golden.print_versions("transformers")
    for name, (block, scale_format, dtype, n, k) in CASES.items():
        settings = types.SimpleNamespace(weight_block_size=block, scale_fmt=scale_format)
        quantizer = types.SimpleNamespace(quantization_config=settings)
        layer = golden.DOWN_PROJ
        tensors = Fp8Quantize(quantizer).convert({f"{layer}.weight": golden.weight(args.source, "mlp.down_proj", n, k)})
        quantization = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": block,
                        "modules_to_not_convert": ["lm_head"]} | ({"scale_fmt": scale_format} if scale_format else {})
        config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": n, "intermediate_size": k,
                  "num_hidden_layers": 1, "num_attention_heads": 1, "torch_dtype": "bfloat16", "quantization_config": quantization}
        expected = Fp8Dequantize(quantizer)._dequantize_one(tensors[f"{layer}.weight"], tensors[f"{layer}.weight_scale_inv"], dtype)
        if args.only in name:
            golden.write(args.out / f"transformers_{name}", config, tensors, {layer: expected})

    experts, hidden, inner = 2, 64, 32
    tensors, expected = {}, {}
    for part, n, k in (("gate_up_proj", 2 * inner, hidden), ("down_proj", hidden, inner)):
        w = golden.weight(args.source, "mlp.up_proj", experts * n, k).reshape(experts, n, k)
        w[0, 3] = 0
        name = f"model.layers.0.mlp.experts.{part}"
        tensors[f"{name}_blocks"], tensors[f"{name}_scales"] = mxfp4(w)
        tensors[f"{name}_bias"] = torch.zeros(experts, n, dtype=torch.bfloat16)
        values = convert_moe_packed_tensors(tensors[f"{name}_blocks"], tensors[f"{name}_scales"], dtype=torch.bfloat16)
        for expert in range(experts):
            expected[f"{name}.{expert}"] = values[expert].T  # transformers keeps [in, out]
    config = {"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": hidden, "intermediate_size": inner,
              "num_local_experts": experts, "num_hidden_layers": 1, "num_attention_heads": 1, "torch_dtype": "bfloat16",
              "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": [
                  "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}}
    if args.only in "gpt_oss_mxfp4":
        golden.write(args.out / "transformers_gpt_oss_mxfp4", config, tensors, expected)


main()
