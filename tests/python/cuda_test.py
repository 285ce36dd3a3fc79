"""Layers on a GPU: right numbers on the current stream, in CUDA graphs and under torch.compile. Needs a CUDA device and PyTorch."""
import gc
import sys
import threading
import time
import unittest

import gearshift
import gearshift.torch
import numpy
import torch
from made import SEED, Case, Producer

BOUNDS = {"UNQUANTIZED": 0.02, "INT8": 0.04, "FP8_DYNAMIC": 0.1, "W4A16": 0.25, "NVFP4A16": 0.25, "NVFP4": 0.3, "MXFP4": 0.5}
ROWS = (1, 5, 16, 33, 300)  # of streaming and of prefill kernels


class CudaTest(Case):
    def setUp(self):
        torch.manual_seed(SEED)

    def made(self, scheme="NVFP4A16", n=256, k=512, dtype=torch.bfloat16):
        weight = torch.randn(n, k, device="cuda", dtype=dtype) / 8
        return gearshift.Linear.from_float(weight, scheme=scheme, input_amax=8.0), weight

    def near_tensor(self, y, expected, bound):
        self.assertEqual(y.shape, expected.shape)
        self.near(y.detach().float().cpu().numpy(), expected.detach().float().cpu().numpy(), bound)

    def test_numbers(self):
        for scheme, bound in BOUNDS.items():
            layer, weight = self.made(scheme)
            self.assertEqual((layer.device, layer.dtype), ("cuda:0", "bf16"))
            for dtype in (torch.bfloat16, torch.float16, torch.float32):
                for rows in ROWS:
                    with self.subTest(scheme=scheme, dtype=dtype, rows=rows):
                        x = torch.randn(rows, 512, device="cuda", dtype=dtype)
                        y = layer(x)
                        self.assertEqual((y.dtype, y.device), (dtype, x.device))
                        self.near_tensor(y, x.float() @ weight.float().T, bound)
                        out = torch.full_like(y, torch.nan)
                        self.assertIs(layer(x, out), out)
                        self.assertTrue(torch.equal(out, y))
            self.assertEqual(layer(x[:0]).shape, (0, 256))

    def test_current_stream(self):
        """x is written by work that is still waiting when the layer is called."""
        layer, weight = self.made()
        value = torch.randn(33, 512, device="cuda", dtype=torch.bfloat16)
        expected = layer(value)
        torch.cuda.synchronize()
        for how in ("current", "given", "capsule"):
            with self.subTest(how):
                x, out = torch.zeros_like(value), torch.empty_like(expected)
                side = torch.cuda.Stream()
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    torch.cuda._sleep(400_000_000)
                    x.copy_(value)
                    begin = time.perf_counter()
                    if how == "current":
                        layer(x, out)
                if how == "given":
                    layer(x, out, stream=side)
                elif how == "capsule":
                    layer(Producer(x), Producer(out), stream=side.cuda_stream)
                self.assertLess(time.perf_counter() - begin, 0.05)
                self.assertFalse(side.query())  # the call has returned before its stream came to it
                side.synchronize()
                self.assertTrue(torch.equal(out, expected))

    def test_graphs(self):
        for scheme in BOUNDS:
            layer, _ = self.made(scheme)
            for rows in ROWS:
                with self.subTest(scheme=scheme, rows=rows):
                    x = torch.randn(rows, 512, device="cuda", dtype=torch.bfloat16)
                    layer(x)
                    graph = torch.cuda.CUDAGraph()
                    with torch.cuda.graph(graph):
                        y = layer(x)
                    for _ in range(3):
                        x.normal_()
                        y.fill_(torch.nan)
                        graph.replay()
                        self.assertTrue(torch.equal(y, layer(x)))

    def test_compiled(self):
        model = torch.nn.Sequential(torch.nn.Linear(512, 256), torch.nn.GELU(), torch.nn.Linear(256, 512)).cuda().bfloat16()
        with torch.inference_mode():
            expected_float = model(torch.ones(4, 512, device="cuda", dtype=torch.bfloat16))
            replaced = gearshift.torch.replace_linears(model, "INT8")
            self.assertEqual(len(replaced), 2)
            self.near_tensor(model(torch.ones(4, 512, device="cuda", dtype=torch.bfloat16)), expected_float, 0.05)
            compiled = torch.compile(model, mode="reduce-overhead", fullgraph=True)
            for rows in (4, 4, 4, 33, 33, 33):  # recorded from the second or third call of a shape on
                x = torch.randn(rows, 512, device="cuda", dtype=torch.bfloat16)
                self.near_tensor(compiled(x).clone(), model(x), 0.02)

    def test_arrays_of_cupy(self):
        try:
            import cupy
        except ImportError:
            self.skipTest("no CuPy")
        layer, weight = self.made(dtype=torch.float16)
        x = cupy.random.standard_normal((7, 512)).astype(cupy.float16)
        out = cupy.empty((7, 256), cupy.float16)
        with cupy.cuda.Stream(non_blocking=True) as stream:
            layer(x, out)
            stream.synchronize()
        expected = torch.from_dlpack(x).float() @ weight.float().T
        self.near(cupy.asnumpy(out), expected.cpu().numpy(), 0.25)

    def test_misuse(self):
        usage = gearshift.UsageError
        layer, weight = self.made()
        x = torch.randn(3, 512, device="cuda", dtype=torch.bfloat16)
        self.refused(usage, lambda: layer(x.cpu()), "cpu", "cuda:0")
        self.refused(usage, lambda: layer(numpy.ones((3, 512), numpy.float32)), "cpu", "cuda:0")
        self.refused(usage, lambda: layer(x, torch.empty(3, 256, dtype=torch.bfloat16)), "cpu", "cuda:0")
        self.refused(usage, lambda: layer(x.double()), "F64")
        self.refused(usage, lambda: layer(x[:, :-1]), "511", "512")
        self.refused(usage, lambda: layer(x, torch.empty(2, 256, device="cuda", dtype=torch.bfloat16)), "2 rows")
        self.refused(usage, lambda: layer(x.T.contiguous().T), "contiguous")
        on_cpu = gearshift.Linear.from_float(weight, scheme="INT8", device="cpu")
        self.refused(usage, lambda: on_cpu(x), "cuda:0", "cpu")
        layer.close()
        self.refused(usage, lambda: layer(x), "closed")

    def test_four_threads(self):
        layer, _ = self.made("FP8_DYNAMIC")
        x = torch.randn(300, 512, device="cuda", dtype=torch.bfloat16)
        expected, wrong = {rows: layer(x[:rows]) for rows in ROWS}, []
        torch.cuda.synchronize()

        def call():
            with torch.cuda.stream(torch.cuda.Stream()):
                for i in range(200):
                    rows = ROWS[i % len(ROWS)]
                    if not torch.equal(layer(x[:rows]), expected[rows]):
                        wrong.append(rows)

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_memory_comes_back(self):
        weight = torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16)
        x = torch.randn(8, 1024, device="cuda", dtype=torch.bfloat16)

        def live(times):
            for _ in range(times):
                with gearshift.Linear.from_float(weight, scheme="NVFP4A16") as layer:
                    layer(x)
            gc.collect()
            torch.cuda.synchronize()
            return torch.cuda.mem_get_info()[0]

        before = live(5)
        self.assertLess(before - live(100), 16 << 20)


if __name__ == "__main__":
    if not torch.cuda.is_available():
        sys.exit("cuda_test: no CUDA device that PyTorch can use")
    unittest.main()
