#!/usr/bin/env python3
"""Goldens of GPTQModel: quantized on token ids and saved by it, loaded again and dequantised by its own torch layers.

Needs from PyPI: torch, safetensors, transformers, gptqmodel and what that asks for (torchao, accelerate, pypcre, logbar, tokenicer,
device-smi, defuser, threadpoolctl, datasets, pyarrow, pandas, pillow, requests).
"""

import json
import os
import pathlib
import tempfile

os.environ.setdefault("GPTQMODEL_CPU_WORKERS", "4")  # it refuses to start on two cores otherwise

import torch
from gptqmodel import BACKEND, GPTQModel, QuantizeConfig
from safetensors.torch import load_file

import golden

CASES = {
    "w4_g32": dict(bits=4, group_size=32),
    "w4_g32_actorder": dict(bits=4, group_size=32, desc_act=True, act_group_aware=False),
    "w4_g32_asym": dict(bits=4, group_size=32, sym=False, desc_act=False),
    "w4_g32_asym_v2": dict(bits=4, group_size=32, sym=False, desc_act=False, format="gptq_v2"),
    "w4_whole_row": dict(bits=4, group_size=-1, desc_act=False, act_group_aware=False),
    "w2_g32": dict(bits=2, group_size=32),
    "w3_g32": dict(bits=3, group_size=32),
    "w8_g32": dict(bits=8, group_size=32),
}


def main():
    args = golden.arguments(__doc__)
    golden.print_versions("transformers", "gptqmodel")
    layers = [golden.DOWN_PROJ]
    rows = [{"input_ids": ids.unsqueeze(0), "attention_mask": torch.ones(1, len(ids), dtype=torch.int64)}
            for ids in golden.token_ids(count=16, length=64)]
    for name, case in CASES.items():
        if args.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            golden.saved_llama(folder + "/float", args.source, torch.float16, hidden=64, head_dim=32, intermediate=128)
            golden.tokenizer().save_pretrained(folder + "/float")
            try:
                model = GPTQModel.load(folder + "/float", QuantizeConfig(device="cpu", **case))
                model.quantize(rows, batch_size=1, backend=BACKEND.TORCH)
                model.save(folder + "/quantized")
                saved = pathlib.Path(folder, "quantized")
                config = json.loads((saved / "config.json").read_text())
                side = json.loads((saved / "quantize_config.json").read_text())
                for document in (config["quantization_config"], side):
                    document["meta"].pop("offload_to_disk_path", None)  # a folder of the machine it ran on
                tensors = {}
                for file in saved.glob("*.safetensors"):
                    tensors |= golden.keep(load_file(file), layers)
                loaded = GPTQModel.load(str(saved), backend=BACKEND.TORCH, device="cpu", dtype=torch.float16).model
                expected = {layer: loaded.get_submodule(layer).eval().dequantize_weight().T.contiguous() for layer in layers}
            except Exception as error:  # a scheme that this version of the writer refuses
                print(f"{name}: not written: {type(error).__name__}: {error}")
                if args.only:
                    raise
                continue
        golden.write(args.out / f"gptqmodel_{name}", config, tensors, expected, [("quantize_config.json", side)])


main()
