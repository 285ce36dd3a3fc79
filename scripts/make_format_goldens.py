#!/usr/bin/env python3
"""Writes tests/data/format/ml_dtypes.json: what ml_dtypes and NumPy make of every element format.

    python3 -m venv venv && venv/bin/pip install ml-dtypes numpy
    venv/bin/python scripts/make_format_goldens.py tests/data/format/ml_dtypes.json

Per format: `codes` and `values` (a decode table, floats as their 32-bit patterns; all codes, or a sample for 16 bits),
and `inputs` (32-bit patterns) and `encoded` (codes).

ml_dtypes casts as the specifications do and quantization does not: e4m3fn gives NaN and e5m2 infinity past their
largest value. The inputs of the formats of at most 8 bits are therefore clamped to the largest value before the cast,
as quantization recipes do. NaN is left out of the inputs: formats without NaN disagree about it by design.
"""

import argparse
import json
import sys

import ml_dtypes
import numpy as np

# name: (dtype, bits)
FORMATS = {
    "e2m1": (ml_dtypes.float4_e2m1fn, 4),
    "e2m3": (ml_dtypes.float6_e2m3fn, 6),
    "e3m2": (ml_dtypes.float6_e3m2fn, 6),
    "e4m3": (ml_dtypes.float8_e4m3fn, 8),
    "e5m2": (ml_dtypes.float8_e5m2, 8),
    "e8m0": (ml_dtypes.float8_e8m0fnu, 8),
    "bf16": (ml_dtypes.bfloat16, 16),
    "fp16": (np.float16, 16),
}


def words(values):
    return np.asarray(values, np.float32).view(np.uint32)


def decode(codes, dtype, bits):
    storage = np.uint16 if bits == 16 else np.uint8
    return np.asarray(codes, storage).view(dtype).astype(np.float32)


def encode(values, dtype, bits):
    with np.errstate(over="ignore"):
        coded = np.asarray(values, np.float32).astype(dtype)
    return coded.view(np.uint16 if bits == 16 else np.uint8)


def inputs(finite, rng, count):
    """Zeros, extremes, powers of two, midpoints of neighbours with the floats beside them, and a log-uniform draw."""
    finite = np.unique(finite)
    largest, smallest = finite[-1], np.min(finite[finite > 0])
    picked = [0.0, -0.0, largest, -largest, smallest, -smallest, np.inf, -np.inf, 3e38, -3e38, 1e-45, -1e-45, 1.0, 1 / 3]
    low = rng.integers(0, len(finite) - 1, count // 6)
    middle = ((finite[low].astype(np.float64) + finite[low + 1].astype(np.float64)) / 2).astype(np.float32)
    beside = [np.nextafter(middle, np.float32(side)) for side in (-np.inf, np.inf)]
    exponents = rng.uniform(np.log2(float(smallest)) - 2, min(np.log2(float(largest)) + 2, 127.9), count // 2)
    drawn = np.exp2(exponents) * rng.choice([-1, 1], len(exponents))
    return np.concatenate([np.float32(picked), middle, *beside, drawn.astype(np.float32)]).astype(np.float32)


def golden(name, rng, count):
    dtype, bits = FORMATS[name]
    codes = np.arange(1 << bits) if bits <= 8 else np.sort(rng.choice(1 << bits, count, replace=False))
    values = decode(codes, dtype, bits)
    if name == "e8m0":
        # Scales are powers of two already; what a cast does to other floats is nobody's recipe.
        given = clamped = np.exp2(np.arange(-127, 128)).astype(np.float32)
    else:
        table = decode(np.arange(1 << bits), dtype, bits)
        finite = table[np.isfinite(table)]
        given = inputs(finite, rng, count)
        clamped = np.clip(given, finite.min(), finite.max()) if bits <= 8 else given
    return {
        "codes": codes.tolist(),
        "values": words(values).tolist(),
        "inputs": words(given).tolist(),
        "encoded": encode(clamped, dtype, bits).tolist(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", help="JSON file to write")
    parser.add_argument("--seed", type=int, default=20250301, help="of the random inputs (default %(default)s)")
    parser.add_argument("--count", type=int, default=240, help="random inputs per format (default %(default)s)")
    options = parser.parse_args()

    rng = np.random.default_rng(options.seed)
    versions = {"ml_dtypes": ml_dtypes.__version__, "numpy": np.__version__, "python": sys.version.split()[0]}
    document = {"made_by": "scripts/make_format_goldens.py", "versions": versions, "seed": options.seed, "formats": {}}
    for name in FORMATS:
        document["formats"][name] = golden(name, rng, options.count)

    lines = [f'"{key}":{json.dumps(document[key])}' for key in ("made_by", "versions", "seed")]
    formats = [f'"{name}":{json.dumps(data, separators=(",", ":"))}' for name, data in document["formats"].items()]
    with open(options.output, "w", encoding="ascii") as file:
        file.write("{" + ",\n".join(lines) + ',\n"formats":{\n' + ",\n".join(formats) + "\n}}\n")
    print(f"{options.output}: ml_dtypes {versions['ml_dtypes']}, numpy {versions['numpy']}")


if __name__ == "__main__":
    main()
