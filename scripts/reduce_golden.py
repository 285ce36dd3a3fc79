#!/usr/bin/env python3
"""Keeps the known answers of a few layers: activations and outputs, without the weights.

    reduce_golden.py EXPECTED.safetensors OUT.safetensors LAYER...

EXPECTED holds for every layer NAME.x (activations), NAME.xq, NAME.w and NAME.y (outputs, float64) as a slow oracle
computed them; OUT gets NAME.x and NAME.y of the layers named. Needs nothing but Python.
"""

import json
import struct
import sys


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    start = 8 + length
    return {name: (entry, data[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]]) for name, entry in header.items()}


def main(source, target, layers):
    tensors = read(source)
    header, body = {}, b""
    for name in (f"{layer}.{kind}" for layer in layers for kind in "xy"):
        entry, data = tensors[name]
        header[name] = {"dtype": entry["dtype"], "shape": entry["shape"], "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(target, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
