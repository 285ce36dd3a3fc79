"""What the tests of the Python package share: small checkpoints, written by hand, and a place for them."""
import json
import os
import random
import struct
import sys
import tempfile
import unittest

import numpy

import gearshift

SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
DTYPES = {"float32": "F32", "float16": "F16"}


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": DTYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(numpy.ascontiguousarray(array).tobytes())


def bf16(array):
    """float32 -> the upper halves, rounded to nearest even, as uint16."""
    bits = numpy.ascontiguousarray(array, dtype=numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)


class Producer:
    """Nothing but DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Case(unittest.TestCase):
    """A fresh folder, made-up numbers that differ from run to run, and errors that must say what they say."""

    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory()
        cls.folder = cls._folder.name
        cls.random = numpy.random.default_rng(SEED)
        print(f"{cls.__name__}: seed {SEED}", file=sys.stderr)

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    @classmethod
    def normal(cls, *shape):
        return cls.random.standard_normal(shape).astype(numpy.float32)

    @classmethod
    def float_model(cls, name="float", layers=2, width=64, hidden=96):
        """A checkpoint of MLPs: up_proj and gate_proj [hidden, width], down_proj [width, hidden], fp32."""
        folder = os.path.join(cls.folder, name)
        os.makedirs(folder)
        tensors = {}
        for i in range(layers):
            for part, shape in (("up_proj", (hidden, width)), ("gate_proj", (hidden, width)), ("down_proj", (width, hidden))):
                tensors[f"model.layers.{i}.mlp.{part}.weight"] = cls.normal(*shape) / 8
        write_safetensors(os.path.join(folder, "model.safetensors"), tensors)
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "float32"}, file)
        return folder, tensors

    def refused(self, kind, call, *words):
        """`call` raises `kind`, and its sentence has all the words."""
        with self.assertRaises(kind) as caught:
            call()
        error = caught.exception
        self.assertIsInstance(error, gearshift.Error)
        for word in words:
            self.assertIn(word, str(error))
        for field in ("code", "subject", "found", "wanted", "hint"):
            self.assertIsInstance(getattr(error, field), str)
        return error

    def near(self, y, expected, bound):
        """Largest error relative to the largest magnitude."""
        y, expected = numpy.asarray(y, dtype=numpy.float64), numpy.asarray(expected, dtype=numpy.float64)
        self.assertEqual(y.shape, expected.shape)
        self.assertTrue(numpy.isfinite(y).all())
        self.assertLess(numpy.abs(y - expected).max() / numpy.abs(expected).max(), bound)
