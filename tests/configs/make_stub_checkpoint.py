#!/usr/bin/env python3
"""Build a checkpoint directory from one entry of tests/data/configs.

    make_stub_checkpoint.py tests/data/configs/NAME.expect.json OUT_DIR [--headers-only] [--dtypes last]

OUT_DIR gets the model's real config.json (and side files such as hf_quant_config.json) and a model.safetensors whose
header lists every tensor of the modules named in NAME.expect.json with its true dtype and shape. The weight bytes are a
hole of the right length (zeros that take no disk), or are missing altogether with --headers-only, as when only the
header of a remote file has been fetched. Where an entry allows several dtypes, the first is written; --dtypes last
takes the last. Where the release's shape is not known (null), a small one is made up: the scheme stays to be found.
"""
import argparse, json, os, shutil, struct, sys

SIZE = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2,
        "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "U8": 1, "I8": 1, "BOOL": 1}
# (family, suffix) -> shape for a module of 256 x 256, used where the entry has null
MADE_UP = {("unquantized", "weight"): [256, 256], ("int8_channel", "weight"): [256, 256], ("int8_channel", "weight_scale"): [256, 1],
           ("nvfp4", "weight_packed"): [256, 128], ("nvfp4", "weight_scale"): [256, 16], ("nvfp4", "weight_global_scale"): [1],
           ("nvfp4", "input_global_scale"): [1], ("bnb_nf4", "weight.quant_state.bitsandbytes__nf4"): [64]}


def tensors(expect):
    """(name, dtype alternatives, shape) of every tensor in the entry, in its order."""
    for module, m in expect["modules"].items():
        for suffix, t in m["tensors"].items():
            shape = t["shape"]
            if shape is None or None in shape:
                shape = MADE_UP[m["family"], suffix]
            yield f"{m.get('hf_name') or module}.{suffix}", t["dtype"].split("|"), shape
    for module, m in expect.get("fused_3d", {}).items():  # expert stacks: the tensors hang off the parent module
        for suffix, t in m["tensors"].items():
            yield f"{module.rsplit('.', 1)[0]}.{suffix}", t["dtype"].split("|"), t["shape"]


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("expect")
    ap.add_argument("out")
    ap.add_argument("--headers-only", action="store_true")
    ap.add_argument("--dtypes", choices=("first", "last"), default="first")
    args = ap.parse_args()

    with open(args.expect, encoding="utf-8") as f:
        expect = json.load(f)
    here = os.path.dirname(os.path.abspath(args.expect))
    os.makedirs(args.out, exist_ok=True)
    for name in expect["files"]:
        stem = name[len(expect["name"]) + 1:]
        shutil.copyfile(os.path.join(here, name), os.path.join(args.out, "config.json" if stem == "json" else stem))

    header, offset = {}, 0
    for name, dtypes, shape in tensors(expect):
        if name in header:
            continue
        dtype = dtypes[0 if args.dtypes == "first" else -1]
        size = SIZE[dtype]
        for d in shape:
            size *= d
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    blob = json.dumps(header, separators=(",", ":")).encode()
    blob += b" " * (-len(blob) % 8)
    with open(os.path.join(args.out, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(blob)))
        f.write(blob)
        if not args.headers_only:
            f.truncate(8 + len(blob) + offset)
    return 0


if __name__ == "__main__":
    sys.exit(main())
