"""DLPack capsules that lie, break the protocol or come from nowhere: each is refused with a clear error."""
import ctypes
import unittest

import gearshift
import numpy
from made import Case

CPU, CUDA, CUDA_HOST, METAL = 1, 2, 3, 8


# Source: dlpack.h of DLPack 1.1.
class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", Device), ("ndim", ctypes.c_int32), ("dtype", DataType),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", Deleter)]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Producer:
    """Exports a capsule made by hand. `deleted` counts how often its consumer let go of it."""

    def __init__(self, data, shape, strides=None, dtype=(2, 32, 1), device=CPU, offset=0, name=b"dltensor", ndim=None, says=None):
        self.deleted, self.says = 0, says or device
        self.shape_of_c, self.name = (ctypes.c_int64 * max(1, len(shape)))(*shape), name
        self.strides_of_c = None if strides is None else (ctypes.c_int64 * max(1, len(strides)))(*strides)
        self.managed = Managed(Tensor(data, Device(device, 0), len(shape) if ndim is None else ndim, DataType(*dtype), self.shape_of_c,
                                      self.strides_of_c, offset), None, Deleter(self.let_go))
        self.capsule = new_capsule(ctypes.addressof(self.managed), name, None)

    def let_go(self, _):
        self.deleted += 1

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return (self.says, 0)


class DlpackTest(Case):
    def setUp(self):
        self.layer = gearshift.Linear.from_float(self.normal(48, 128), scheme="INT8", device="cpu")
        self.x = self.normal(4, 128)
        self.expected = self.layer(self.x)
        self.at = self.x.ctypes.data

    def out(self):
        return numpy.full((4, 48), numpy.nan, numpy.float32)

    def test_right_ones(self):
        for arguments in ({}, {"strides": (128, 1)}, {"device": CUDA_HOST}):
            with self.subTest(arguments):
                producer, out = Producer(self.at, (4, 128), **arguments), self.out()
                self.layer(producer, out)
                self.assertTrue(numpy.array_equal(out, self.expected))
                self.assertEqual(producer.deleted, 1)
        out = self.out()
        self.layer(self.x, Producer(out.ctypes.data, (4, 48)))
        self.assertTrue(numpy.array_equal(out, self.expected))
        shifted = Producer(self.at, (3, 128), offset=4 * 128)
        self.layer(shifted, out[:3])
        self.assertTrue(numpy.array_equal(out[:3], self.layer(self.x[1:])))

    def test_a_capsule_twice(self):
        producer = Producer(self.at, (4, 128))
        self.layer(producer, self.out())
        self.refused(gearshift.UsageError, lambda: self.layer(producer, self.out()), "used_dltensor")
        self.assertEqual(producer.deleted, 1)

    def test_wrong_ones(self):
        far = 1 << 62
        cases = [
            ("another name", {"shape": (4, 128), "name": b"tensor"}, "named tensor"),
            ("no dimension", {"shape": ()}, "no dimensions"),
            ("less than none", {"shape": (), "ndim": -1}, "capsule"),
            ("no data", {"data": None, "shape": (4, 128)}, "null"),
            ("negative shape", {"shape": (-4, 128)}, "-4"),
            ("more than memory", {"shape": (far, 128)}, str(far)),
            ("more rows than out has", {"shape": (1 << 20, 128)}, ""),  # whichever is seen first: so many rows, or that they reach into out
            ("rows beyond memory", {"shape": (4, 128), "strides": (far, 1)}, str(far)),
            ("dimensions beyond memory", {"shape": (2, 2, 128), "strides": (far, far // 2, 1)}, "apart"),
            ("a product that wraps", {"shape": (2, 4, 128), "strides": (0, far, 1)}, "memory that exists"),
            ("backward rows", {"shape": (4, 128), "strides": (-128, 1)}, "-128"),
            ("backward elements", {"shape": (4, 128), "strides": (128, -1)}, "-1"),
            ("one row for all", {"shape": (4, 128), "strides": (0, 1)}, "0 elements apart"),
            ("address between elements", {"shape": (3, 128), "offset": 1}, "multiple of 4"),
            ("lanes", {"shape": (4, 32), "dtype": (2, 32, 4)}, "4 lanes"),
            ("no bits", {"shape": (4, 128), "dtype": (2, 0, 1)}, "0 bits"),
            ("an unknown type", {"shape": (4, 128), "dtype": (200, 32, 1)}, "type 200"),
            ("packed elements", {"shape": (4, 128), "dtype": (17, 4, 1)}, "type 17"),
            ("double precision", {"shape": (4, 128), "dtype": (2, 64, 1)}, "F64"),
            ("a GPU's that says CPU", {"shape": (4, 128), "device": CUDA, "says": CPU}, "cuda:0"),
            ("another device", {"shape": (4, 128), "device": METAL}, "(8, 0)"),
        ]
        for what, arguments, word in cases:
            with self.subTest(what):
                producer, out = Producer(**{"data": self.at, **arguments}), self.out()
                self.refused(gearshift.UsageError, lambda: self.layer(producer, out), "x", word)
                self.assertTrue(numpy.isnan(out).all())
        for strides, word in (((0, 1), "0 elements"), ((-48, 1), "-48"), ((48, 2), "2 apart")):
            out = self.out()
            self.refused(gearshift.UsageError, lambda: self.layer(self.x, Producer(out.ctypes.data, (4, 48), strides)), "y", word)
            self.assertTrue(numpy.isnan(out).all())

    def test_producers_that_misbehave(self):
        out = self.out()

        def producer(export, device=lambda self: (CPU, 0)):
            return type("Odd", (), {"__dlpack__": export, "__dlpack_device__": device})()

        def fails(self, **_):
            raise RuntimeError("out of paper")

        self.assertIsInstance(self.refused(gearshift.UsageError, lambda: self.layer(producer(fails), out), "out of paper").__cause__, RuntimeError)
        self.refused(gearshift.UsageError, lambda: self.layer(producer(lambda self, **_: None), out), "NoneType", "capsule")
        self.refused(gearshift.UsageError, lambda: self.layer(producer(lambda self, **_: 42), out), "int", "capsule")
        self.refused(gearshift.UsageError, lambda: self.layer(producer(None), out), "export")
        self.refused(gearshift.UsageError, lambda: self.layer(producer(fails, lambda self: "cpu"), out), "'cpu'", "pair")
        raw = Producer(self.at, (4, 128)).capsule
        self.refused(gearshift.UsageError, lambda: self.layer(raw, out), "PyCapsule")
        # One of before versions, and of before devices.
        old = type("Old", (), {"__dlpack__": lambda odd: Producer.__dlpack__(made)})
        made = Producer(self.at, (4, 128))
        self.layer(old(), out)
        self.assertTrue(numpy.array_equal(out, self.expected))

    def test_arrays_of_numpy(self):
        refuse = lambda x, *words: self.refused(gearshift.UsageError, lambda: self.layer(x, self.out()), *words)
        refuse(self.x[::-1], "-128")
        refuse(numpy.broadcast_to(self.x[:1], (4, 128)), "0 elements apart")
        refuse(self.x.astype(">f4"), ">f4", "byte order")
        refuse(numpy.full((4, 128), None), "object", "numbers")
        refuse(numpy.zeros((4, 128), [("a", "f4")]), "numbers")
        refuse(numpy.zeros((4, 0), numpy.float32), "0 columns", "128")
        self.refused(gearshift.UsageError, lambda: self.layer(self.x, self.out()[::-1]), "-48")
        self.refused(gearshift.UsageError, lambda: self.layer(self.x, numpy.broadcast_to(self.out()[:1], (4, 48))), "written")
        self.assertEqual(self.layer(numpy.zeros((2, 0, 128), numpy.float32)).shape, (2, 0, 48))

    def test_numbers_and_texts_that_do_not_fit(self):
        usage, x = gearshift.UsageError, self.x
        self.refused(usage, lambda: self.layer(x, expert=1 << 70), "expert")
        self.refused(usage, lambda: self.layer(x, expert="a"), "expert", "'a'")
        self.refused(usage, lambda: self.layer(x, stream=-1), "stream")
        self.refused(usage, lambda: self.layer(x, stream=1 << 64), "stream")
        self.refused(usage, lambda: gearshift.plan("a\0b"), "zero")
        self.refused(usage, lambda: gearshift.plan("a\udc80b"), "UTF-8")
        self.refused(usage, lambda: gearshift.plan("model", device="cpu\0"), "zero")
        codes, scale = numpy.ones((4, 128), numpy.int8), numpy.ones((4, 1), numpy.float32)
        self.refused(usage, lambda: gearshift.Linear.from_tensors(codes, scale, scheme="INT8", tensors={3: x}), "int")
        self.refused(usage, lambda: gearshift.Linear.from_tensors(codes, scale, scheme="INT8", tensors={"\ud800": x}), "UTF-8")
        self.refused(gearshift.Error, lambda: gearshift.Linear.from_tensors(codes, scale, scheme='{"a":' * 100000), "nesting")
        self.refused(usage, lambda: gearshift.Linear.from_float(Producer(self.at, (1 << 31, 1 << 31)), scheme="INT8"), "memory")


if __name__ == "__main__":
    unittest.main()
