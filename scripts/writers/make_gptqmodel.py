#!/usr/bin/env python3
"""Goldens of GPTQModel: quantized by GPTQ with its calibration, saved by it, dequantised by its TorchLinear.

Needs from PyPI: torch, safetensors, transformers, gptqmodel, threadpoolctl, device-smi, pypcre, tokenicer, logbar, defuser.
"""

import json
import pathlib
import tempfile

import torch
from gptqmodel import GPTQModel, QuantizeConfig
from gptqmodel.nn_modules.qlinear.torch import TorchLinear
from gptqmodel.utils.model import convert_gptq_v1_to_v2_format_module
from safetensors.torch import load_file

import golden

CASES = {
    "gptq_v1_g32": dict(bits=4, group_size=32), "gptq_v1_g32_actorder": dict(bits=4, group_size=32, desc_act=True),
    "gptq_v2_g32": dict(bits=4, group_size=32, format="gptq_v2"), "gptq_v1_asym": dict(bits=4, group_size=32, sym=False),
    "gptq_v2_asym": dict(bits=4, group_size=64, sym=False, format="gptq_v2"),
    "gptq_v2_asym_actorder": dict(bits=4, group_size=32, sym=False, desc_act=True, format="gptq_v2"),
    "gptq_v1_whole_row": dict(bits=4, group_size=-1), "gptq_v1_8bit": dict(bits=8, group_size=32),
    "gptq_v1_3bit": dict(bits=3, group_size=32), "gptq_v1_2bit_asym": dict(bits=2, group_size=32, sym=False),
}


def dequantize(tensors, layer, config):
    t = {k[len(layer) + 1:]: v for k, v in tensors.items() if k.startswith(layer + ".")}
    k, n = t["g_idx"].shape[0], t["scales"].shape[1]
    linear = TorchLinear(bits=config["bits"], group_size=config["group_size"], sym=config["sym"], desc_act=config["desc_act"],
                         in_features=k, out_features=n, bias=False)
    for name in ("qweight", "qzeros", "scales", "g_idx"):
        setattr(linear, name, t[name].clone())
    if config["checkpoint_format"] == "gptq":
        linear.qzero_format(format=1)
        convert_gptq_v1_to_v2_format_module(linear, bits=config["bits"], pack_dtype=torch.int32)
    return linear.eval().dequantize_weight().T.contiguous()


def main():
    args = golden.arguments(__doc__)
    golden.print_versions("transformers", "gptqmodel")
    layers = [golden.DOWN_PROJ]
    for name, case in CASES.items():
        if args.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            golden.saved_llama(folder + "/float", args.source, torch.float16, hidden=64, head_dim=32, intermediate=128)
            golden.tokenizer().save_pretrained(folder + "/float")
            try:
                model = GPTQModel.load(folder + "/float", QuantizeConfig(**{"desc_act": False, **case}), device="cpu")
                model.quantize([{"input_ids": row, "attention_mask": torch.ones_like(row)} for row in golden.token_ids(16, 48)], batch_size=1)
                model.save(folder + "/quantized")
                config = json.loads(pathlib.Path(folder, "quantized/config.json").read_text())
                tensors = {}
                for file in pathlib.Path(folder, "quantized").glob("*.safetensors"):
                    tensors |= golden.keep(load_file(file), layers)
                side = [(f.name, json.loads(f.read_text())) for f in pathlib.Path(folder, "quantized").glob("quantize_config.json")]
                expected = {layer: dequantize(tensors, layer, config["quantization_config"]) for layer in layers}
            except Exception as error:  # a scheme that this version of the writer refuses
                print(f"{name}: not written: {type(error).__name__}: {error}")
                if args.only:
                    raise
                continue
        golden.write(args.out / f"gptqmodel_{name}", config, tensors, expected, side)


main()
