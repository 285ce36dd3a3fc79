"""Layers: right numbers from every source and type, clear errors for everything else, from one thread and from many."""
import gc
import os
import threading
import unittest

import gearshift
import numpy
from made import Case, Producer, bf16

PRESETS = {"UNQUANTIZED": 1e-5, "INT8": 0.03, "FP8_DYNAMIC": 0.1, "FP8": 0.1, "MXFP8": 0.1, "W4A16": 0.25, "NVFP4A16": 0.25, "NVFP4": 0.3, "MXFP4": 0.5}


class LinearTest(Case):
    def made(self, scheme="INT8", n=48, k=128, **options):
        weight, bias = self.normal(n, k) / 8, self.normal(n)
        return gearshift.Linear.from_float(weight, bias, scheme=scheme, device="cpu", **options), weight, bias

    def test_presets(self):
        x = self.normal(13, 128)
        for scheme, bound in PRESETS.items():
            with self.subTest(scheme):
                layer, weight, bias = self.made(scheme, input_amax=8.0)
                self.near(layer(x), x @ weight.T + bias, bound)
                self.assertEqual((layer.n, layer.k, layer.experts, layer.device, layer.dtype), (48, 128, 0, "cpu", "fp32"))
                self.assertIn("48 x 128", repr(layer))
                self.assertEqual(layer.plan["n"], 48)

    def test_types(self):
        layer, weight, bias = self.made("UNQUANTIZED")
        x = self.normal(5, 128)
        y = layer(x.astype(numpy.float16))
        self.assertEqual(y.dtype, numpy.float16)
        self.near(y, x @ weight.T + bias, 5e-3)
        # bf16, which NumPy lacks: its bits as integers, with the type beside them.
        out = numpy.zeros((5, 48), dtype=numpy.uint16)
        native = layer._open()
        native.run(bf16(x), (4, 16), out, (4, 16), 0, 0, 0, 0)
        self.near((out.astype(numpy.uint32) << 16).view(numpy.float32), x @ weight.T + bias, 2e-2)

    def test_types_of_ml_dtypes(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("ml_dtypes is not installed")
        layer, weight, bias = self.made("UNQUANTIZED")
        x = self.normal(5, 128)
        y = layer(x.astype(ml_dtypes.bfloat16))
        self.assertEqual(y.dtype, ml_dtypes.bfloat16)
        self.near(y.astype(numpy.float32), x @ weight.T + bias, 2e-2)
        codes = self.normal(48, 128).astype(ml_dtypes.float8_e4m3fn)
        stored = gearshift.Linear.from_tensors(codes, numpy.ones((48, 1), numpy.float32), scheme="FP8_DYNAMIC", dtype="fp32", device="cpu")
        self.near(stored(x), x @ codes.astype(numpy.float32).T, 0.1)

    def test_shapes_and_outputs(self):
        layer, weight, bias = self.made("UNQUANTIZED")
        x = self.normal(2, 3, 128)
        expected = x @ weight.T + bias
        self.near(layer(x), expected, 1e-5)
        self.near(layer(x[0, 0]), expected[0, 0], 1e-5)
        self.assertEqual(layer(x[:0]).shape, (0, 3, 48))
        out = numpy.full((2, 3, 48), numpy.nan, dtype=numpy.float32)
        self.assertIs(layer(x, out), out)
        self.near(out, expected, 1e-5)
        wide = self.normal(6, 200)
        self.near(layer(wide[:, 30:158]), wide[:, 30:158] @ weight.T + bias, 1e-5)
        frozen = x.copy()
        frozen.flags.writeable = False
        self.near(layer(frozen), expected, 1e-5)
        plain = numpy.empty((2, 3, 48), dtype=numpy.float32)
        layer(Producer(x), plain)
        self.near(plain, expected, 1e-5)
        self.refused(gearshift.UsageError, lambda: layer(Producer(x)), "x")

    def test_misuse(self):
        layer, _, _ = self.made()
        x, usage = self.normal(4, 128), gearshift.UsageError
        self.refused(usage, lambda: layer(x.astype(numpy.float64)), "F64", "F32")
        self.refused(usage, lambda: layer(x.astype(numpy.int32)), "I32")
        self.refused(usage, lambda: layer(x[:, :-1]), "127", "128")
        self.refused(usage, lambda: layer(numpy.float32(3)), "shape")
        self.refused(usage, lambda: layer([1, 2, 3]), "list", "__dlpack__")
        self.refused(usage, lambda: layer(None), "NoneType")
        self.refused(usage, lambda: layer(x.T.copy().T), "apart", "contiguous")
        self.refused(usage, lambda: layer(x, numpy.empty((4, 47), numpy.float32)), "47", "48")
        self.refused(usage, lambda: layer(x, numpy.empty((3, 48), numpy.float32)), "3 rows")
        self.refused(usage, lambda: layer(x, numpy.empty((4, 48), numpy.float16)), "F16")
        self.refused(usage, lambda: layer(x, x[:, :48]), "memory that x uses")
        frozen = numpy.empty((4, 48), numpy.float32)
        frozen.flags.writeable = False
        self.refused(usage, lambda: layer(x, frozen), "out", "written")
        self.refused(usage, lambda: layer(x, expert=1), "expert")
        self.refused(usage, lambda: layer(x, stream="now"), "stream")
        complex_x = x.astype(numpy.complex64)
        self.refused(usage, lambda: layer(complex_x), "x")

    def test_a_device_that_is_not_the_layers(self):
        layer, _, _ = self.made()

        class Elsewhere(Producer):
            shape = (4, 128)

            def __dlpack_device__(self):
                return (2, 0)

            def __dlpack__(self, **arguments):
                raise BufferError("not reached by a layer on a CPU")

        self.refused(gearshift.UsageError, lambda: layer(Elsewhere(None), numpy.empty((4, 48), numpy.float32)), "cuda:0", "device")
        self.refused(gearshift.UsageError, lambda: gearshift.Linear.from_float(self.normal(8, 128), scheme="INT8", device="h100"), "H100")

    def test_closed(self):
        layer, _, _ = self.made()
        with layer:
            layer(self.normal(1, 128))
        self.refused(gearshift.UsageError, lambda: layer(self.normal(1, 128)), "closed")
        self.refused(gearshift.UsageError, lambda: layer.plan, "closed")
        layer.close()
        self.assertIn("closed", repr(layer))

    def test_from_tensors(self):
        codes = self.random.integers(-127, 128, (48, 128)).astype(numpy.int8)
        scale = numpy.abs(self.normal(48, 1)) + 0.1
        bias = self.normal(48)
        layer = gearshift.Linear.from_tensors(codes, scale, scheme="INT8", bias=bias, dtype="fp32", device="cpu")
        x = self.normal(7, 128)
        self.near(layer(x), x @ (codes * scale).T + bias, 0.02)
        fp8 = self.random.integers(0, 120, (48, 128)).astype(numpy.uint8)  # e4m3 codes without NaN
        values = numpy.array([(m / 8 + (e > 0)) * 2.0 ** (max(e, 1) - 7) for e in range(16) for m in range(8)])[fp8]
        layer = gearshift.Linear.from_tensors(fp8, scale, scheme="FP8_DYNAMIC", dtype="fp32", device="cpu")
        self.near(layer(x), x @ (values * scale).T, 0.1)
        # Any writer's own words: GPTQ.
        packed, zeros = self.random.integers(0, 2**31, (16, 48)).astype(numpy.int32), numpy.full((1, 6), 0x77777777, numpy.int32)
        scales = (numpy.abs(self.normal(1, 48)) + 0.1).astype(numpy.float16)
        layer = gearshift.Linear.from_tensors(
            None, scheme={"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True}, dtype="fp32", device="cpu",
            tensors={"qweight": packed, "qzeros": zeros, "scales": scales})
        nibbles = numpy.stack([(packed.view(numpy.uint32) >> (4 * i)) & 15 for i in range(8)], axis=1).reshape(128, 48).astype(numpy.float64) - 8
        self.near(layer(x), x @ (nibbles * scales.astype(numpy.float64)), 0.01)

    def test_tensors_that_do_not_fit(self):
        codes, scale = numpy.ones((48, 128), numpy.int8), numpy.ones((48, 1), numpy.float32)
        make = gearshift.Linear.from_tensors
        self.refused(gearshift.UsageError, lambda: make(codes, scale, scheme="INT9"), "INT9")
        self.refused(gearshift.Error, lambda: make(codes, scheme="INT8"), "scale")
        self.refused(gearshift.Error, lambda: make(codes, scale[:7], scheme="INT8"), "7")
        self.refused(gearshift.Error, lambda: make(codes.astype(numpy.float64), scale, scheme="INT8"), "F64")
        self.refused(gearshift.UsageError, lambda: make(codes[:, ::2], scale, scheme="INT8"), "contiguous")
        self.refused(gearshift.UsageError, lambda: make(codes, scale, scheme=3), "int")
        scale[5] = numpy.nan
        self.refused(gearshift.DamagedCheckpointError, lambda: make(codes, scale, scheme="INT8"), "row 5")
        self.refused(gearshift.UnsupportedSchemeError, lambda: make(codes, scheme={"quant_method": "bitsandbytes"}), "bitsandbytes")
        weight = self.normal(48, 100)
        self.refused(gearshift.UsageError, lambda: gearshift.Linear.from_float(weight, scheme="W4A16"), "128")
        weight[3, 4] = numpy.inf
        self.refused(gearshift.DamagedCheckpointError, lambda: gearshift.Linear.from_float(weight, scheme="INT8"), "[3, 4]")

    def test_from_checkpoint(self):
        model, tensors = self.float_model()
        out = os.path.join(self.folder, "int8")
        report = gearshift.quantize(model, out, "INT8")
        self.assertEqual(len(report.rows), 6)
        x = self.normal(9, 64)
        name = "model.layers.1.mlp."
        gate_up = numpy.concatenate([tensors[name + "gate_proj.weight"], tensors[name + "up_proj.weight"]])
        with gearshift.plan(out, batch=[1, 9], device="cpu") as plan:
            fused = gearshift.Linear.from_checkpoint(out, name + "gate_up_proj", plan)
            part = gearshift.Linear.from_checkpoint(out, name + "up_proj", plan)
            self.refused(gearshift.UsageError, lambda: gearshift.Linear.from_checkpoint(out, name + "upproj", plan), "upproj", "up_proj")
            self.refused(gearshift.UsageError, lambda: gearshift.Linear.from_checkpoint(model, name + "up_proj", plan), model)
            self.refused(gearshift.UsageError, lambda: gearshift.Linear.from_checkpoint(out, name + "up_proj", plan, batch=1), "batch")
        self.near(fused(x), x @ gate_up.T, 0.03)
        self.near(part(x), x @ tensors[name + "up_proj.weight"].T, 0.03)
        alone = gearshift.Linear.from_checkpoint(out, name + "up_proj", fuse=False, device="cpu")
        self.near(alone(x), x @ tensors[name + "up_proj.weight"].T, 0.03)

    def test_four_threads(self):
        layer, _, _ = self.made("NVFP4")
        x = self.normal(33, 128)
        expected = {m: layer(x[:m]) for m in (1, 5, 16, 33)}
        wrong = []

        def call():
            for i in range(200):
                m = (1, 5, 16, 33)[i % 4]
                if not numpy.array_equal(layer(x[:m]), expected[m]):
                    wrong.append(m)

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_calls_while_another_thread_tunes(self):
        model = os.path.join(self.folder, "tuned_meanwhile")
        gearshift.quantize(self.float_model("float_meanwhile", layers=1)[0], model, "NVFP4")
        layer, _, _ = self.made("NVFP4")
        x = self.normal(33, 128)
        expected = {m: layer(x[:m]) for m in (1, 9, 33)}
        tuner = threading.Thread(target=gearshift.tune, args=(model,), kwargs={"device": "cpu", "batch": [1, 16], "store": "off"})
        tuner.start()
        calls = 0
        while tuner.is_alive() or calls < 100:
            for m, y in expected.items():
                self.assertTrue(numpy.array_equal(layer(x[:m]), y))
                calls += 1
        tuner.join()

    def test_a_checkpoint_that_goes_away(self):
        model, tensors = self.float_model("gone")
        name, file = "model.layers.0.mlp.up_proj", os.path.join(model, "model.safetensors")
        with gearshift.plan(model, device="cpu", fuse=False) as plan:
            os.remove(file)  # an open plan keeps its files
            x = self.normal(3, 64)
            self.near(gearshift.Linear.from_checkpoint(model, name, plan)(x), x @ tensors[name + ".weight"].T, 1e-5)
        self.refused(gearshift.Error, lambda: gearshift.Linear.from_checkpoint(model, name, device="cpu"), model)
        os.remove(os.path.join(model, "config.json"))
        self.refused(gearshift.UsageError, lambda: gearshift.plan(model), model)

    def test_closing_while_others_call(self):
        for _ in range(20):
            layer, _, _ = self.made("UNQUANTIZED")
            x, seen = self.normal(64, 128), []

            def call():
                try:
                    while True:
                        layer(x)
                except gearshift.UsageError as error:
                    seen.append(error)

            threads = [threading.Thread(target=call) for _ in range(3)]
            for thread in threads:
                thread.start()
            layer.close()
            for thread in threads:
                thread.join()
            self.assertEqual(len(seen), 3)

    def test_other_threads_run_meanwhile(self):
        layer, _, _ = self.made("UNQUANTIZED", n=512, k=512)
        x, counted, stop = self.normal(4096, 512), [0], threading.Event()

        def count():
            while not stop.is_set():
                counted[0] += 1

        thread = threading.Thread(target=count)
        thread.start()
        before = counted[0]
        native, out = layer._open(), numpy.empty((4096, 512), numpy.float32)
        native.run(x, (-1, 0), out, (-1, 0), 0, 0, 0, 0)  # one call into C++
        during = counted[0] - before
        stop.set()
        thread.join()
        self.assertGreater(during, 0)

    def test_a_thousand_lives(self):
        model, _ = self.float_model("lives", layers=1)
        name = "model.layers.0.mlp.down_proj"
        x = self.normal(2, 96)

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

        def live():
            with gearshift.plan(model, device="cpu", store="off", isolation=False, batch=[1, 2]) as plan:
                with gearshift.Linear.from_checkpoint(model, name, plan) as layer:
                    layer(x)

        for _ in range(150):
            live()
        gc.collect()
        before = resident()
        for _ in range(1000):
            live()
        gc.collect()
        grown = resident() - before
        # The weights alone of a thousand layers would be 24 MB.
        self.assertLess(grown, 3 << 20)


if __name__ == "__main__":
    unittest.main()
