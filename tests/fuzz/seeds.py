#!/usr/bin/env python3
"""Write small inputs for the fuzz targets: seeds.py FOLDER makes FOLDER/safetensors, FOLDER/json, FOLDER/checkpoint and FOLDER/registry."""
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



def small(shape):
    """The shape with large dimensions divided by 16, so that most matrices still fit their scales."""
    return [d // 16 if d > 64 and d % 16 == 0 else d for d in shape]


def checkpoints():
    """Config and header of every example configuration, matrices brought down to fuzzing size."""
    folder = pathlib.Path(__file__).parent.parent / "data" / "configs"
    for path in sorted(folder.glob("*.expect.json")):
        expect = json.loads(path.read_text())
        header, end = {}, 0
        for module, facts in list(expect["modules"].items())[:6]:
            for suffix, stored in facts["tensors"].items():
                if stored["shape"] is None or None in stored["shape"]:
                    continue
                dtype, shape = stored["dtype"].split("|")[0], small(stored["shape"])
                size = {"F8": 1, "U8": 1, "I8": 1, "BO": 1, "F1": 2, "BF": 2, "I1": 2, "F6": 8, "I6": 8}.get(dtype[:2], 4)
                for d in shape:
                    size *= d
                header[f"{facts.get('hf_name') or module}.{suffix}"] = tensor(dtype, shape, end, end + size)
                end += size
        config = (folder / expect["files"][0]).read_bytes()
        yield json.dumps(json.loads(config), separators=(",", ":")).encode()[:20000] + b"\0" + json.dumps(header).encode() + b"\0\x38\x01\x40"


def registries():
    """The documented example, the registry of vLLM, and the example with one line left out at a time."""
    root = pathlib.Path(__file__).parent.parent.parent
    example = (root / "docs" / "registry.md").read_text().split("```json\n", 1)[1].split("```", 1)[0]
    yield example.encode()
    yield (root / "data" / "vllm.json").read_bytes()
    lines = example.splitlines(keepends=True)
    for number in range(len(lines)):
        yield "".join(lines[:number] + lines[number + 1:]).encode()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name, inputs in (("safetensors", SAFETENSORS), ("json", JSON), ("checkpoint", checkpoints()), ("registry", registries())):
        folder = pathlib.Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(inputs):
            (folder / f"{number:02}").write_bytes(data)
