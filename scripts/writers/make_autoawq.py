#!/usr/bin/env python3
"""Goldens of AutoAWQ: scales and zero points from its pseudo_quantize_tensor, packed by its WQLinear_GEMM, dequantised by
its dequantize_gemm. (No search for activation scales: it changes the float weights before this, never the format.)

AutoAWQ's package initialiser imports model classes that recent transformers no longer has; it is left out here, the modules
used are loaded from the installed package as they are. Needs from PyPI: torch, safetensors, transformers, autoawq.
"""

import importlib.util
import pathlib
import sys
import types

import torch
import transformers

import golden

package = types.ModuleType("awq")
package.__path__ = [str(pathlib.Path(p, "awq")) for p in sys.path if pathlib.Path(p, "awq", "__init__.py").exists()]
sys.modules["awq"] = package
if not hasattr(transformers.activations, "PytorchGELUTanh"):
    transformers.activations.PytorchGELUTanh = transformers.activations.GELUTanh
from awq.modules.linear.gemm import WQLinear_GEMM  # noqa: E402
from awq.quantize.quantizer import AwqQuantizer  # noqa: E402
from awq.utils.packing_utils import dequantize_gemm  # noqa: E402

CASES = {"g128": (128, [(golden.O_PROJ, 32, 128), (golden.DOWN_PROJ, 32, 256)]),
         "g32": (32, [(golden.O_PROJ, 64, 64), (golden.DOWN_PROJ, 32, 160)])}


def main():
    args = golden.arguments(__doc__)
    golden.print_versions("transformers", "autoawq")
    for name, (group, layers) in CASES.items():
        if args.only not in name:
            continue
        options = types.SimpleNamespace(w_bit=4, group_size=group, zero_point=True)
        tensors, expected = {}, {}
        for layer, n, k in layers:
            linear = torch.nn.Linear(k, n, bias=False, dtype=torch.float16)
            w = golden.weight(args.source, ".".join(layer.split(".")[-2:]), n, k).half()
            linear.weight.data, scales, zeros = AwqQuantizer.pseudo_quantize_tensor(options, w)
            packed = WQLinear_GEMM.from_linear(linear, 4, group, scales=scales.t().contiguous(), zeros=zeros.t().contiguous())
            tensors |= {f"{layer}.{k}": v for k, v in packed.state_dict().items()}
            expected[layer] = dequantize_gemm(packed.qweight, packed.qzeros, packed.scales, 4, group).T
        config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": layers[0][1], "num_hidden_layers": 1,
                  "intermediate_size": layers[1][2], "num_attention_heads": 2, "torch_dtype": "float16", "quantization_config":
                  {"quant_method": "awq", "bits": 4, "group_size": group, "zero_point": True, "version": "gemm",
                   "backend": "autoawq", "modules_to_not_convert": None}}
        golden.write(args.out / f"autoawq_{name}", config, tensors, expected)


main()
