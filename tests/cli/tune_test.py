#!/usr/bin/env python3
"""tune and store from outside: what is kept, what survives kills, several processes and ranks. Usage: tune_test.py GEARSHIFT MODEL PLUGINS"""
import json, os, random, struct, subprocess, sys, tempfile, time, unittest

COMMAND, MODEL, PLUGINS = (os.path.abspath(word) for word in sys.argv[1:4])
del sys.argv[1:4]
VARIABLES = ("GEARSHIFT_", "XDG_", "HOME", "COLUMNS", "RANK", "WORLD_SIZE", "OMPI_", "SLURM_", "PMI", "MASTER_")


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = os.path.join(cls.folder.name, "model")
        done = subprocess.run([COMMAND, "quantize", MODEL, "-o", cls.model, "--scheme", "NVFP4"], capture_output=True, env=cls.environment({}))
        assert done.returncode == 0, done.stderr.decode()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @staticmethod
    def environment(more):
        return {k: v for k, v in os.environ.items() if not k.startswith(VARIABLES)} | {"OMP_WAIT_POLICY": "passive"} | more

    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.store = os.path.join(self.place.name, "store.sqlite")

    def tearDown(self):
        self.place.cleanup()

    def start(self, *words, env=None):
        return subprocess.Popen([COMMAND, *words], env=self.environment({"GEARSHIFT_STORE": self.store} | (env or {})),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def call(self, *words, code=0, env=None):
        process = self.start(*words, env=env)
        out, said = process.communicate(timeout=600)
        self.assertEqual(process.returncode, code, said.decode())
        return out.decode(), said.decode()

    def json(self, *words, **how):
        return json.loads(self.call(*words, "--json", **how)[0])

    def tune(self, *words, batch="1,16", **how):
        return self.json("tune", self.model, "--batch", batch, "--threads", "1", *words, **how)

    def rows(self):
        return self.json("store", "list")["rows"]

    def test_what_is_measured_is_kept_and_planned_with(self):
        report = self.tune()
        self.assertEqual(report["schema"], "gearshift.tune/1")
        for row in report["rows"]:
            for key in ("layer", "family", "scheme", "n", "k", "m", "kernel", "backend", "tactic", "median_us", "p10_us", "p90_us", "samples", "chosen", "previous"):
                self.assertIn(key, row)
            self.assertTrue(row["ok"])
            self.assertLessEqual(row["p10_us"], row["median_us"])
        self.assertGreaterEqual(report["oracle_gap"], 1)
        measured = [row for row in self.rows() if row["kind"] == "measurement"]
        self.assertEqual({(r["kernel"], r["m_min"]) for r in measured}, {(r["kernel"], r["m"]) for r in report["rows"]})
        again = self.tune()
        self.assertEqual(again["measured"], 0)
        self.assertEqual(again["plan_hash"], report["plan_hash"])
        plan = self.json("plan", self.model, "--batch", "1,16", "--threads", "1")
        self.assertEqual(plan["hash"], report["plan_hash"])
        self.assertIn("measured", {r["source"] for layer in plan["layers"] for r in layer["kernels"]})
        for layer in plan["layers"]:
            reasons = [c["reason"] for c in layer["candidates"] if c["verdict"] == "eligible"]
            if any(r["source"] == "measured" for r in layer["kernels"]):
                self.assertTrue(any(" us at M " in reason for reason in reasons), reasons)
        static = self.json("plan", self.model, "--batch", "1,16", "--threads", "1", "--selection", "static")
        self.assertEqual({r["source"] for layer in static["layers"] for r in layer["kernels"]}, {"static"})

    def test_killed_at_any_moment(self):
        seed = random.SystemRandom().randrange(1 << 32)
        rng = random.Random(seed)
        keys = lambda: {(r["kind"], r["kernel"], r["layer_class"], r["m_min"], r["m_max"], r["threads"]) for r in self.rows()}
        before = set()
        longest = 0.1
        for i in range(200):
            process = self.start("tune", self.model, "--batch", "1,2,3,4,5,6,7,8,16", "--threads", "1")
            begin = time.monotonic()
            try:
                process.wait(timeout=rng.uniform(0, longest))
                longest = max(0.05, (time.monotonic() - begin) * 0.9)
            except subprocess.TimeoutExpired:
                process.kill()
                longest = min(longest * 1.05, 1.0)
            process.communicate()
            if i % 10 != 9:
                continue
            now = keys()
            self.assertLessEqual(before, now, f"seed {seed}: a row is gone")
            before = now
            self.call("store", "verify")
        self.assertTrue(before, "no row was ever finished")
        self.call("tune", self.model, "--batch", "1,2,3,4,5,6,7,8,16", "--threads", "1")

    def test_eight_processes(self):
        processes = [self.start("tune", self.model, "--batch", "1,2,4,8", "--threads", "1", "--json") for _ in range(8)]
        reports = []
        for process in processes:
            out, said = process.communicate(timeout=600)
            self.assertEqual(process.returncode, 0, said.decode())
            reports.append(json.loads(out))
        self.call("store", "verify")
        self.assertGreater(sum(report["measured"] for report in reports), 0)

    def test_eight_ranks_one_plan(self):
        for variables in (lambda i: {"RANK": str(i), "WORLD_SIZE": "8", "MASTER_ADDR": "a", "MASTER_PORT": "1"},
                          lambda i: {"SLURM_PROCID": str(i), "SLURM_NTASKS": "8", "SLURM_JOB_ID": "4", "SLURM_STEP_ID": "0"}):
            processes = [self.start("tune", self.model, "--batch", "1,8", "--threads", "1", "--json", env=variables(i)) for i in range(8)]
            hashes = set()
            for process in processes:
                out, said = process.communicate(timeout=600)
                self.assertEqual(process.returncode, 0, said.decode())
                hashes.add(json.loads(out)["plan_hash"])
            self.assertEqual(len(hashes), 1)

    def test_bundles(self):
        self.tune()
        bundle, other = os.path.join(self.place.name, "b.jsonl"), os.path.join(self.place.name, "other.sqlite")
        count = self.json("store", "export", bundle)["changed"]
        self.assertEqual(count, len(self.rows()))
        for _ in range(2):
            self.assertEqual(self.json("store", "import", bundle, env={"GEARSHIFT_STORE": other})["total"], count)
        self.assertEqual(self.json("store", "list", env={"GEARSHIFT_STORE": other})["rows"], self.rows())
        merged = os.path.join(self.place.name, "merged.sqlite")
        self.assertEqual(self.json("store", "merge", other, env={"GEARSHIFT_STORE": merged})["total"], count)
        with open(bundle) as f:
            text = f.read()
        with open(bundle, "w") as f:
            f.write(text.replace('"samples":', '"samples":1', 1))
        _, said = self.call("store", "import", bundle, code=1)
        self.assertIn("SHA-256", said)
        kernel = self.rows()[0]["kernel"]
        self.json("store", "prune", kernel)
        self.assertNotIn(kernel, {row["kernel"] for row in self.rows()})

    def test_store_usage(self):
        for words in (["store"], ["store", "burn"], ["store", "export"], ["store", "list", "x"], ["store", "list", "x", "y"]):
            out, said = self.call(*words, code=2)
            self.assertEqual(out, "")
            self.assertEqual(said.count("\n"), 1, said)
        _, said = self.call("store", "merge", os.path.join(self.place.name, "none"), code=1)
        self.assertIn("no such file", said)

    def test_damaged_store_is_one_warning(self):
        with open(self.store, "wb") as f:
            f.write(b"no database" * 100)
        _, said = self.call("plan", self.model)
        self.assertEqual(said.count("damaged"), 1, said)
        self.call("store", "verify", code=1)
        self.assertGreater(self.tune()["measured"], 0)
        self.call("store", "verify")
        self.assertTrue(os.path.exists(self.store + ".damaged"))

    def test_off(self):
        report = self.tune(env={"GEARSHIFT_STORE": "off"})
        self.assertGreater(report["measured"], 0)
        self.assertEqual(os.listdir(self.place.name), [])

    def test_budgets(self):
        report = self.tune("--memory-limit", "1")
        self.assertEqual(report["measured"], 0)
        self.assertIn("memory: needs", report["not_measured"][0])
        self.assertFalse([row for row in self.rows() if row["kind"] == "measurement"])
        for wrong in (["--time-budget", "0"], ["--time-budget", "x"], ["--memory-limit", "-1"], ["--mode", "lazy"]):
            self.call("tune", self.model, *wrong, code=2)

    def test_plugin(self):
        floats = os.path.join(self.place.name, "floats.safetensors")
        data = b"".join(struct.pack("<f", random.uniform(-1, 1))[2:] for _ in range(48 * 64))
        header = json.dumps({"layers.0.mlp.up_proj.weight": {"dtype": "BF16", "shape": [48, 64], "data_offsets": [0, len(data)]}}).encode()
        with open(floats, "wb") as f:
            f.write(struct.pack("<Q", len(header)) + header + data)
        stubs = os.path.join(PLUGINS, "stub_plugin.so")
        report = self.json("run", floats, "--plugin", stubs, "--linear-backend", "bf16=stub_crash", "--batch", "1", "--dtype", "bf16")
        self.assertEqual({q["kernel"] for q in report["quarantined"]}, {"stub_crash"})
        plan = self.json("plan", floats, "--plugin", stubs, "--dtype", "bf16")
        crash = [c for layer in plan["layers"] for c in layer["candidates"] if c["kernel"] == "stub_crash"]
        self.assertIn("self_check", {c["stage"] for c in crash})
        example = os.path.join(PLUGINS, "example_plugin.so")
        report = self.json("run", floats, "--plugin", example, "--linear-backend", "bf16=example", "--batch", "1", "--dtype", "bf16")
        self.assertTrue(all(row["ok"] for row in report["rows"]))
        _, said = self.call("plan", floats, "--plugin", os.path.join(PLUGINS, "old_plugin.so"), code=2)
        self.assertIn("version", said)
        self.assertEqual(said.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
