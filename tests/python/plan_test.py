"""Plans: same content and words as the command, shown as text, page and JSON; errors as data."""
import json
import os
import pickle
import subprocess
import unittest

import gearshift
from made import ROOT, Case

COMMAND = os.environ["GEARSHIFT_COMMAND"]
SLICE = os.path.join(ROOT, "examples", "minilm_slice")


class PlanTest(Case):
    def test_same_bytes_as_the_command(self):
        cases = [({}, []), ({"batch": [1, 17], "dtype": "fp32", "device": "cpu"}, ["--batch", "1,17", "--dtype", "fp32", "--device", "cpu"]),
                 ({"device": "h200", "registry": "vllm"}, ["--device", "h200", "--registry", "vllm"]),
                 ({"layer": {"*": "reference", "*.attention.*": "auto"}, "no_fuse": True, "batch": 4},
                  ["--layer", "*=reference", "--layer", "*.attention.*=auto", "--no-fuse", "--batch", "4"])]
        for arguments, words in cases:
            said = subprocess.run([COMMAND, "plan", SLICE, "--json", *words], capture_output=True, text=True, check=True)
            plan = gearshift.plan(SLICE, **arguments)
            # The same bytes, but for who gave an option.
            self.assertEqual(plan.to_json(), said.stdout.replace('"command line"', '"call"'))
            self.assertEqual(plan.hash, json.loads(said.stdout)["hash"])

    def test_shows_itself(self):
        plan = gearshift.plan(SLICE, device="cpu")
        self.assertIn("encoder.layer.0.intermediate.dense", str(plan))
        self.assertEqual(repr(plan), str(plan))
        self.assertTrue(plan.to_html().startswith("<!doctype html>"))
        self.assertIn("<iframe", plan._repr_html_())
        self.assertNotIn("<!doctype", plan._repr_html_())
        why = plan.explain("encoder.layer.0.intermediate.dense")
        self.assertIn("reference", why)
        self.assertEqual(repr(why), str(why))
        self.assertEqual(len(plan.hash), 32)
        self.assertIn("encoder.layer.0.output.dense", [layer["name"] for layer in plan.layers])
        self.assertEqual(plan.model, SLICE)

    def test_diff(self):
        first = gearshift.plan(SLICE, device="cpu", selection="static")
        same = gearshift.plan(SLICE, device="cpu", selection="static")
        other = gearshift.plan(SLICE, device="cpu", selection="static", linear_backend="reference")
        self.assertEqual(first.hash, same.hash)
        self.assertFalse(first.diff(same))
        changed = first.diff(other)
        self.assertTrue(changed)
        self.assertIn("reference", str(changed))
        self.assertEqual(changed.to_dict()["schema"], "gearshift.diff/1")
        self.assertEqual(len(gearshift.diff(first.to_json(), other)), len(changed))
        self.refused(gearshift.UsageError, lambda: first.diff(3), "int")

    def test_errors_are_data(self):
        error = self.refused(gearshift.UsageError, lambda: gearshift.plan("/no/such/model"), "/no/such/model")
        self.assertEqual(error.code, "usage")
        self.assertIsInstance(error, ValueError)
        self.assertIn("batch", self.refused(gearshift.UsageError, lambda: gearshift.plan(SLICE, bacth=1)).hint)
        self.refused(gearshift.UsageError, lambda: gearshift.plan(SLICE, batch="many"), "many")
        self.refused(gearshift.UsageError, lambda: gearshift.plan(SLICE, device="toaster"), "toaster")
        self.refused(gearshift.UsageError, lambda: gearshift.plan(3), "int")
        self.refused(gearshift.UsageError, lambda: gearshift.plan(SLICE, batch=object()), "batch", "object")
        fp8 = os.path.join(self.folder, "fp8")
        gearshift.quantize(SLICE, fp8, "FP8_DYNAMIC")
        strict = self.refused(gearshift.FallbackRefusedError, lambda: gearshift.plan(fp8, linear_backend="marlin", strict=True))
        self.assertTrue(strict.details)
        self.refused(gearshift.UsageError, lambda: gearshift.plan(SLICE).explain("no.such.layer"), "no.such.layer")
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((type(again), str(again), again.subject), (type(error), str(error), error.subject))
        damaged = os.path.join(self.folder, "damaged.safetensors")
        with open(damaged, "wb") as file:
            file.write(b"\x10\0\0\0\0\0\0\0{\"a\": 1}        ")
        self.refused(gearshift.DamagedCheckpointError, lambda: gearshift.plan(damaged), "damaged.safetensors")

    def test_closed(self):
        with gearshift.plan(SLICE, device="cpu") as plan:
            layer = gearshift.Linear.from_checkpoint(SLICE, "encoder.layer.0.output.dense", plan)
        self.refused(gearshift.UsageError, lambda: plan.hash, "closed")
        self.refused(gearshift.UsageError, lambda: str(plan), "closed")
        self.assertIn("closed", repr(plan))
        self.assertEqual((layer.n, layer.k), (192, 768))


if __name__ == "__main__":
    unittest.main()
