#!/usr/bin/env python3
"""Cuts examples/minilm_slice out of the real weights of all-MiniLM-L6-v2.

    make_minilm_slice.py MODEL_DIR OUT_DIR

MODEL_DIR is what scripts/get_minilm.sh prints; needs numpy and safetensors from PyPI. The slice is layer 0 at half its
width: the first 192 of 384 hidden features, the first 768 of 1536 intermediate ones, heads 0 to 5 of 12; weights and
biases rounded from fp32 to fp16.
"""

import json
import pathlib
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

HIDDEN, INTERMEDIATE = 192, 768


def main():
    model, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    config = json.loads((model / "config.json").read_text())
    full = {config["hidden_size"]: HIDDEN, config["intermediate_size"]: INTERMEDIATE}
    tensors = {}
    for name, value in load_file(model / "model.safetensors").items():
        if name.startswith("encoder.layer.0."):
            cut = tuple(slice(full[extent]) for extent in value.shape)
            tensors[name] = np.ascontiguousarray(value[cut].astype(np.float16))
    config |= {"hidden_size": HIDDEN, "intermediate_size": INTERMEDIATE, "num_hidden_layers": 1,
               "num_attention_heads": config["num_attention_heads"] // 2, "torch_dtype": "float16"}
    out.mkdir(parents=True, exist_ok=True)
    save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")


main()
