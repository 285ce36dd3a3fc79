#!/usr/bin/env python3
"""Write small inputs for the fuzz targets: seeds.py FOLDER makes FOLDER/safetensors and FOLDER/json."""
import json
import pathlib
import struct
import sys


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


SAFETENSORS = [
    safetensors({}),
    safetensors({"a": tensor("F32", [2, 2], 0, 16), "b": tensor("F4", [3, 2], 16, 19)}, bytes(19)),
    safetensors({"a": tensor("BF16", [2], 0, 4)}),
    safetensors({"__metadata__": {"format": "pt"}, "": tensor("F64", [], 0, 8)}, bytes(8)),
    safetensors({"a": tensor("U8", [0, 5], 0, 0), "b": tensor("F6_E2M3", [4], 0, 3)}, bytes(3)),
    b"version https://git-lfs.github.com/spec/v1\n",
    b"GGUF\x03\x00\x00\x00",
]
JSON = [
    b'{"a":[1,-2.5e3,true,null,"x\\u00e9\\n"],"b":{"c":{}}}',
    b'[[[[[[[[]]]]]]]]',
    json.dumps({f"layers.{i}": i for i in range(40)}).encode(),
    b'{"*[!a-c]?":1,"[]]":2,"[a":3}',
]

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name, inputs in (("safetensors", SAFETENSORS), ("json", JSON)):
        folder = pathlib.Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(inputs):
            (folder / f"{number:02}").write_bytes(data)
