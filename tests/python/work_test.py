"""Work on models: reports, progress, Ctrl-C; devices, kernels and stores; what importing costs."""
import os
import signal
import subprocess
import sys
import threading
import unittest

import gearshift
from made import ROOT, Case

SLICE = os.path.join(ROOT, "examples", "minilm_slice")


class WorkTest(Case):
    def options(self, **more):
        return {"device": "cpu", "batch": [1, 9], "store": os.path.join(self.folder, "store.sqlite"), **more}

    def test_verify_with_progress(self):
        steps = []
        report = gearshift.verify(SLICE, progress=lambda *step: steps.append(step), **self.options())
        self.assertTrue(report.passed)
        self.assertEqual(report["schema"], "gearshift.verify/1")
        self.assertTrue(all(row["ok"] for row in report))
        self.assertEqual(len(report), len(report.rows))
        self.assertIn("cpu_bf16", str(report))
        self.assertIn("<iframe", report._repr_html_())
        self.assertEqual(steps[0][0], 0)
        self.assertEqual(steps[-1][:2], (steps[-1][1], steps[-1][1]))
        self.assertTrue(all(done <= total and isinstance(what, str) for done, total, what in steps))

    def test_run(self):
        report = gearshift.run(SLICE, **self.options())
        self.assertTrue(report.passed)
        self.assertTrue(all(row["median_us"] > 0 for row in report))

    def test_what_progress_raises_comes_back(self):
        class Enough(Exception):
            pass

        def stop(done, total, what):
            if done == 1:
                raise Enough(what)

        with self.assertRaises(Enough):
            gearshift.verify(SLICE, progress=stop, **self.options())

    def test_tune_and_store(self):
        model, _ = self.float_model("to_tune", layers=1)
        out = os.path.join(self.folder, "to_tune_nvfp4")
        gearshift.quantize(model, out, {"*.mlp.*": "NVFP4", "*.down_proj": "INT8"})
        options = self.options(batch=[1, 16])
        report = gearshift.tune(out, **options)
        self.assertEqual(report["schema"], "gearshift.tune/1")
        store = gearshift.Store(options["store"])
        self.assertEqual(store.path, options["store"])
        self.assertGreater(len(store.list().rows), 0)
        self.assertTrue(store.verify().passed)
        bundle = os.path.join(self.folder, "bundle.jsonl")
        store.export(bundle)
        other = gearshift.Store(os.path.join(self.folder, "other.sqlite"))
        other.import_(bundle)
        self.assertEqual(len(other.list().rows), len(store.list().rows))
        third = gearshift.Store(os.path.join(self.folder, "third.sqlite"))
        third.merge(store)
        self.assertEqual(len(third.list().rows), len(store.list().rows))
        third.prune("reference")
        self.assertLessEqual(len(third.list().rows), len(store.list().rows))
        self.assertIn("store", repr(third))

    def test_bench(self):
        report = gearshift.bench(shape=(64, 64), family="int8_w8a8", batch=1, device="cpu", memory_limit=64 << 20)
        self.assertTrue(report.passed)
        self.assertEqual(report["schema"], "gearshift.bench/1")

    def test_ctrl_c(self):
        """In a process of its own, whose main thread works without the interpreter's lock."""
        for work in (f"gearshift.tune({SLICE!r}, store='off', progress=step)", "gearshift.bench(shape=(64, 64), batch=[1, 2, 3], device='cpu', memory_limit=64 << 20, progress=step)"):
            program = f"""
import gearshift, sys
def step(done, total, what):
    print(done, flush=True)
try:
    {work}
except KeyboardInterrupt:
    print("stopped", flush=True)
    sys.exit(7)
"""
            with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as child:
                self.assertNotEqual(child.stdout.readline(), "")
                child.send_signal(signal.SIGINT)
                said = child.stdout.read()
                self.assertEqual(child.wait(), 7, said)
                self.assertTrue(said.endswith("stopped\n"), said)

    def test_listings(self):
        self.assertTrue(gearshift.devices().rows[0]["present"])
        self.assertIn("NVIDIA H200", [device["name"] for device in gearshift.devices()])
        self.assertIn("cpu_int8_w8a8_dot", [kernel["kernel"] for kernel in gearshift.kernels()])
        self.assertIn("encoder.layer.0.output.dense", [layer["name"] for layer in gearshift.inspect(SLICE)])
        self.refused(gearshift.UsageError, lambda: gearshift.kernels(batch=3), "batch")
        self.refused(gearshift.UsageError, lambda: gearshift.quantize(SLICE, os.path.join(self.folder, "q"), "NVFP5"), "NVFP5")

    def test_environment_and_call(self):
        variable = "GEARSHIFT_LINEAR_BACKEND"
        os.environ[variable] = "reference"
        try:
            policy = gearshift.plan(SLICE, device="cpu").to_dict()["policy"]
            self.assertEqual(policy["linear_backend"], "reference")
            policy = gearshift.plan(SLICE, device="cpu", linear_backend="auto").to_dict()["policy"]
            self.assertEqual(policy["linear_backend"], "auto")
        finally:
            del os.environ[variable]

    def test_import_is_cheap(self):
        program = "import sys, gearshift; bad = {'numpy', 'torch'} & set(sys.modules); assert not bad, bad; " \
                  "maps = open('/proc/self/maps').read(); assert 'libcuda' not in maps and '/dev/nvidia' not in maps"
        subprocess.run([sys.executable, "-c", program], check=True)

    def test_threads_that_work_at_once(self):
        found = []
        threads = [threading.Thread(target=lambda: found.append(gearshift.verify(SLICE, **self.options(store="off")).passed)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [True] * 3)


if __name__ == "__main__":
    unittest.main()
