#!/usr/bin/env python3
"""The command from outside: usage errors, exit codes, where output goes, precedence. Usage: cli_test.py GEARSHIFT"""
import json, os, random, re, shutil, struct, subprocess, sys, tempfile, unittest
from html.parser import HTMLParser

COMMAND = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/gearshift")
VERBS = ["plan", "run", "verify", "tune", "bench", "quantize", "inspect", "diff", "kernels", "devices", "doctor", "store", "completion"]
LATER_VERBS = []
LATER_OPTIONS = []
N, K = 48, 64


def safetensors(tensors):
    """tensors: name -> (dtype, shape, bytes)"""
    header, offset = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values())


def nvfp4_linear(name, rng):
    codes = rng.randbytes(N * K // 2)
    scales = bytes(rng.randrange(0x28, 0x48) for _ in range(N * K // 16))
    scalar = lambda x: ("F32", [1], struct.pack("<f", x))
    return {f"{name}.weight_packed": ("U8", [N, K // 2], codes), f"{name}.weight_scale": ("F8_E4M3", [N, K // 16], scales),
            f"{name}.weight_global_scale": scalar(512.0), f"{name}.input_global_scale": scalar(128.0)}


def bf16_linear(name, rng, n=N):
    data = b"".join(struct.pack("<f", rng.uniform(-1, 1))[2:] for _ in range(n * K))
    return {f"{name}.weight": ("BF16", [n, K], data)}


def scheme(bits):
    return {"num_bits": bits, "type": "float", "strategy": "tensor_group", "group_size": 16, "symmetric": True}


CONFIG = {"architectures": ["TinyModel"], "torch_dtype": "bfloat16", "quantization_config": {
    "quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "quantization_status": "compressed", "ignore": ["lm_head"],
    "config_groups": {"group_0": {"targets": ["Linear"], "weights": scheme(4) | {"dynamic": False},
                                  "input_activations": scheme(4) | {"dynamic": "local"}}}}}


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.seed = random.SystemRandom().randrange(1 << 32)
        rng = random.Random(cls.seed)
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = cls.folder.name
        cls.model = os.path.join(cls.root, "model")
        os.mkdir(cls.model)
        tensors = nvfp4_linear("model.layers.0.mlp.up_proj", rng) | nvfp4_linear("model.layers.0.mlp.down_proj", rng) | bf16_linear("lm_head", rng)
        cls.write(os.path.join(cls.model, "model.safetensors"), safetensors(tensors))
        cls.write(os.path.join(cls.model, "config.json"), json.dumps(CONFIG).encode())
        cls.float_model = os.path.join(cls.root, "float")
        os.mkdir(cls.float_model)
        cls.write(os.path.join(cls.float_model, "model.safetensors"), safetensors(bf16_linear("model.layers.0.mlp.up_proj", rng)))
        cls.write(os.path.join(cls.float_model, "config.json"), json.dumps({"architectures": ["TinyModel"], "torch_dtype": "bfloat16"}).encode())

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @staticmethod
    def write(path, data):
        with open(path, "wb") as f:
            f.write(data)

    @staticmethod
    def read(path):
        with open(path, "rb") as f:
            return f.read()

    def call(self, *words, env=None, **how):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("GEARSHIFT_") and k not in ("COLUMNS", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "HOME")}
        how.setdefault("stdout", subprocess.PIPE)
        done = subprocess.run([COMMAND, *words], env=clean | (env or {}), stderr=subprocess.PIPE, timeout=120, **how)
        done.said, done.out = done.stderr.decode(), (done.stdout or b"").decode()
        return done

    def good(self, *words, code=0, **how):
        done = self.call(*words, **how)
        self.assertEqual(done.returncode, code, f"{words} (seed {self.seed}): {done.said}")
        return done

    def document(self, *words, **how):
        return json.loads(self.good(*words, "--json=-", **how).out)

    def bad(self, code, *words, names=(), **how):
        done = self.call(*words, **how)
        self.assertEqual(done.returncode, code, f"{words} (seed {self.seed}): {done.said or done.out}")
        self.assertEqual(done.out, "", words)
        first, *rest = done.said.splitlines()
        self.assertTrue(first.startswith("gearshift: error: "), first)
        for line in rest:
            self.assertTrue(line.startswith("  "), f"{words}: not one line: {done.said}")
        for name in names:
            self.assertIn(name, done.said)
        return done


class OtherRegistries(Case):
    def kernels_of(self, *options):
        plan = self.document("plan", self.model, *options)
        return {row["name"]: [k["kernel"] for k in row["kernels"]] for row in plan["layers"]}, plan

    def test_what_vllm_would_choose(self):
        kernels, plan = self.kernels_of("--registry", "vllm", "--device", "sm_90")
        self.assertEqual(kernels["model.layers.0.mlp.up_proj"], ["MarlinNvFp4LinearKernel"])
        self.assertEqual(kernels["lm_head"], ["UnquantizedLinearMethod"])
        self.assertEqual(plan["policy"]["registry"], "vllm")
        self.assertEqual(plan["policy"]["packages"][0], "deep_gemm")
        self.assertIn("activation_upgraded", [w["code"] for w in plan["warnings"]])
        kernels, _ = self.kernels_of("--registry", "vllm", "--device", "sm_120", "--without", "flashinfer")
        self.assertEqual(kernels["model.layers.0.mlp.up_proj"], ["CutlassNvFp4LinearKernel"])
        kernels, plan = self.kernels_of("--registry=vllm", "--device=sm_90", "--assume",
                                        "VLLM_DISABLED_KERNELS=MarlinNvFp4LinearKernel,FlashInferTrtllmNvFp4LinearKernel,cuda=12.9")
        self.assertEqual(kernels["model.layers.0.mlp.up_proj"], ["FlashInferCudnnNvFp4LinearKernel"])
        self.assertEqual(plan["policy"]["assume"]["cuda"], "12.9")

    def test_where_vllm_would_raise(self):
        self.bad(3, "plan", self.model, "--registry", "vllm", "--device", "sm_90", "--linear-backend", "b12x",
                 names=["B12xNvFp4LinearKernel", "--linear-backend b12x", "model.layers.0.mlp.up_proj"])
        self.bad(3, "plan", self.model, "--registry", "vllm", "--device", "cpu", names=["no kernel is registered for nvfp4_w4a4 on cpu"])

    def test_its_switches_come_from_the_command_alone(self):
        words = ("plan", self.model, "--registry", "vllm", "--device", "sm_120")
        plain = self.document(*words)
        self.assertEqual(self.document(*words, env={"VLLM_BATCH_INVARIANT": "1"}), plain)
        self.assertNotEqual(self.document(*words, "--assume", "VLLM_BATCH_INVARIANT=1")["hash"], plain["hash"])

    def test_unknown_names(self):
        words = ("plan", self.model, "--registry", "vllm")
        self.bad(2, *words, "--with", "flashinfr", names=["--with", "did you mean flashinfer"])
        self.bad(2, *words, "--assume", "VLLM_USE_DEPGEMM=1", names=["--assume", "VLLM_USE_DEEP_GEMM"])
        self.bad(2, *words, "--assume", "VLLM_USE_DEEP_GEMM=2", names=["0 or 1"])
        self.bad(2, *words, "--assume", "VLLM_USE_DEEP_GEMM", names=["NAME=VALUE"])
        self.bad(2, "plan", self.model, "--registry", "vlm", names=["did you mean vllm", "registry file"])
        self.bad(2, "plan", self.model, "--with", "flashinfr", names=["--with"])
        self.bad(2, "run", self.model, "--registry", "vllm", names=["nothing runs here"])

    def test_a_registry_of_ones_own(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "registry.md"), encoding="utf-8") as f:
            example = f.read().split("```json\n", 1)[1].split("```", 1)[0]
        team = os.path.join(self.root, "team.json")
        self.write(team, example.encode())
        kernels, plan = self.kernels_of("--registry", team, "--device", "sm_100", "--layers", "*.up_proj")
        self.assertEqual(kernels, {"model.layers.0.mlp.up_proj": ["wide_fp4"]})  # K 64 is no multiple of 128
        [fast] = [c for c in plan["layers"][0]["candidates"] if c["kernel"] == "fast_fp4"]
        self.assertEqual((fast["stage"], fast["field"], fast["found"], fast["wanted"]), ("layer", "k", "64", "a multiple of 128"))
        listed = self.document("kernels", "--registry", team)["kernels"]
        self.assertEqual(sorted(k["kernel"] for k in listed), ["fast_fp4", "plain", "wide_fp4"])
        self.write(team, example.replace("multiple", "multipel").encode())
        self.bad(2, "plan", self.model, "--registry", team, names=["team.json", "kernels.fast_fp4.contract.k", "multipel"])
        self.bad(2, "plan", self.model, "--registry", self.root, names=["no regular file"])

    def test_kernels_of_vllm(self):
        listed = self.document("kernels", "--registry", "vllm")["kernels"]
        machete = next(k for k in listed if k["kernel"] == "MacheteLinearKernel")
        self.assertEqual(machete["contract"]["k"], ["a multiple of 64"])
        self.assertFalse(any(k["runnable"] for k in listed))


class Usage(Case):
    def test_shards(self):
        plan = self.document("plan", self.model, "--tp", "2")
        rows = {row["name"]: row for row in plan["layers"]}
        up, down, head = (rows[name] for name in ("model.layers.0.mlp.up_proj", "model.layers.0.mlp.down_proj", "lm_head"))
        self.assertEqual((up["n"], up["k"], up["shard"]["n"], up["shard"]["k"], up["shard"]["split"]), (N // 2, K, N, K, "column"))
        self.assertEqual((down["n"], down["k"], down["shard"]["split"], down["shard"]["rescue"], down["shard"]["extra_bytes"]),
                         (N, K // 2, "row", None, 0))
        self.assertEqual(head["n"], N // 2)
        self.assertEqual(down["memory"]["weight_bytes"] * 2, N * K // 2 + N * K // 16)
        self.assertEqual(self.document("plan", self.model)["layers"][0]["shard"], None)
        cut = {row["name"]: row for row in self.document("plan", self.model, "--tp", "8")["layers"]}["model.layers.0.mlp.down_proj"]
        self.assertEqual((cut["k"], cut["shard"]["field"], cut["shard"]["found"]), (K // 8, "k", str(K // 8)))
        self.assertIn("16", cut["shard"]["wanted"])
        self.assertIn("row split", self.good("plan", self.model, "--tp", "8", "--explain", "model.layers.0.mlp.down_proj").out)
        degrees = {d["degree"]: d for d in self.document("plan", self.model, "--tp", "auto")["tp"]}
        self.assertEqual([degrees[d]["ok"] for d in (1, 2, 4, 8)], [True, True, True, False])
        self.assertEqual((degrees[8]["layers"], degrees[8]["field"]), (1, "k"))
        self.assertIn("without a rescue", self.good("plan", self.model, "--tp", "auto").out)
        for wrong in ("0", "-1", "two", "1e9", ""):
            self.bad(2, "plan", self.model, "--tp", wrong, names=["--tp"])
        self.bad(2, "run", self.model, "--tp", "2", names=["--tp"])
        self.bad(2, "verify", self.model, "--tp", "auto", names=["--tp"])
        verified = self.document("verify", self.model, "--tp", "2", "--batch", "1")
        self.assertTrue(any(row["layer"].endswith(".down_proj (rank 1)") for row in verified["rows"]))
        self.assertTrue(all(row["ok"] for row in verified["rows"]))

    def test_memory_budget(self):
        for size, wanted in (("0", 0), ("1024", 1024), ("2K", 2000), ("1.5KiB", 1536), ("1g", 10**9), ("1MB", 10**6)):
            plan = self.document("plan", self.model, "--memory-budget", size)
            self.assertEqual(plan["memory"]["budget_bytes"], wanted)
        memory = plan["memory"]
        self.assertEqual(memory["weight_bytes"], sum(row["memory"]["weight_bytes"] for row in plan["layers"]))
        self.assertEqual(memory["resident_bytes"], memory["weight_bytes"] + memory["second_layout_bytes"])
        self.assertEqual(set(memory["workspace_bytes"]), {str(m) for m in plan["policy"]["batch"]})
        self.assertIn("memory", self.good("plan", self.model).out)
        for wrong in ("-1", "1iB", "K", "many", "1e40"):
            self.bad(2, "plan", self.model, "--memory-budget", wrong, names=["--memory-budget"])

    def test_batch_invariant(self):
        plan = self.document("plan", self.model, "--batch-invariant")
        self.assertTrue(plan["policy"]["batch_invariant"])
        for row in plan["layers"]:
            self.assertEqual([(k["m_min"], k["m_max"]) for k in row["kernels"]], [(1, None)], row["name"])

    def test_no_verb_and_unknown_verbs(self):
        self.bad(2, names=["plan", "--help"])
        self.bad(2, "plam", names=["plam", "did you mean plan"])
        self.bad(2, "", names=["--help"])
        self.bad(2, "--strict", "plan")
        self.bad(2, "\x1b[31m\xff")

    def test_help_and_version(self):
        overview = self.good("--help").out
        for verb in VERBS:
            self.assertIn(verb, overview)
            page = self.good(verb, "--help").out
            self.assertIn("--json", page)
            self.assertEqual("not in this version" in page.split("\noptions\n")[0], verb in LATER_VERBS, verb)
        page = self.good("plan", "--help").out
        for option in LATER_OPTIONS + ["--linear-backend", "--batch", "--explain"]:
            self.assertIn(option.split()[0], page)
        self.assertEqual(self.good("plan", "-h").out, page)
        self.assertTrue(self.good("--version").out.startswith("gearshift "))
        for width in ("40", "80", "200"):
            for line in self.good("run", "--help", env={"COLUMNS": width}).out.splitlines():
                self.assertLessEqual(len(line), max(int(width), 45))

    def test_unknown_options(self):
        self.bad(2, "plan", self.model, "--bach", "1", names=["--bach", "--batch"])
        self.bad(2, "plan", self.model, "--nothing-like-it", names=["--nothing-like-it"])
        self.bad(2, "plan", self.model, "-x", names=["-x"])
        self.bad(2, "inspect", self.model, "--batch", "1", names=["--batch", "inspect"])
        self.bad(2, "plan", self.model, "--input", "x", names=["--input"])

    def test_model_is_needed_once(self):
        for verb in ("plan", "run", "verify", "quantize", "inspect"):
            self.bad(2, verb, names=["MODEL"])
            self.bad(2, verb, "", names=["MODEL"])
        self.bad(2, "plan", self.model, self.model, names=["extra"])
        self.bad(2, "devices", "x", names=["extra"])

    def test_values(self):
        for option, *values in (("--batch", "0", "-5", "1e9", "abc", "", "1,,2", "1,-1", "99999999999999999999", "4.5"), ("--threads", "0", "-1", "x", "1e99"),
                                ("--dtype", "fp8", ""), ("--linear-backend", "=x", "nothing=native", "nvfp4_w4a4=", "nosuchbackend", ""),
                                ("--moe-backend", "nosuchbackend", "=x"), ("--arithmetic", "fast"), ("--selection", "best"),
                                ("--device", "sm_91", "cuda:x", ""), ("--layer", "x", "=native", "*=", "*=nosuchbackend"), ("--disable", "nosuchkernel", ","),
                                ("--layers", ""), ("--explain", "model.layers.0.mlp.up_prj")):
            for value in values:
                with self.subTest(option=option, value=value):
                    self.bad(2, "plan", self.model, option, value, names=[option])
                    self.bad(2, "plan", self.model, f"{option}={value}")

    def test_missing_value(self):
        for option in ("--batch", "--device", "--layer"):
            self.bad(2, "plan", self.model, option, names=[option])

    def test_near_and_valid_names(self):
        self.bad(2, "plan", self.model, "--device", "sm_91", names=["sm_90", "gfx950", "gb10"])
        self.bad(2, "plan", self.model, "--linear-backend", "nativ", names=["native"])
        self.bad(2, "plan", self.model, "--linear-backend", "nvfp4_w4a5=native", names=["nvfp4_w4a4"])
        self.bad(2, "plan", self.model, "--explain", "model.layers.0.mlp.up_prj", names=["model.layers.0.mlp.up_proj"])

    def test_a_device_that_is_not_here(self):
        self.bad(2, "plan", self.model, "--device", "cuda:7", names=["cuda:7", "sm_90"])
        self.bad(2, "run", self.model, "--device", "sm_90", names=["sm_90"])

    def test_what_is_not_available_yet(self):
        for verb in LATER_VERBS:
            self.bad(2, verb, names=[verb, "not available yet"])
            self.bad(2, verb, self.model, "--whatever", names=[verb])
        for option in LATER_OPTIONS:
            with self.subTest(option=option):
                self.assertEqual(len(self.bad(2, "plan", self.model, *option.split(), names=[option.split()[0]]).said.splitlines()), 1)
            name = option.split()[0][2:]
            self.bad(2, "plan", self.model, env={"GEARSHIFT_" + name.upper().replace("-", "_"): "1"}, names=[name.upper().replace("-", "_")])

    def test_contradictions(self):
        self.bad(2, "plan", self.model, "--fuse", "--no-fuse", names=["--no-fuse"])
        self.bad(2, "plan", self.model, "--device", "cpu", "--device", "gb10", names=["--device"])
        self.bad(2, "quantize", self.float_model, "--scheme", "NVFP4", names=["-o"])
        said = self.bad(2, "quantize", self.float_model, "--scheme", "NVFP4", "-o", "", names=["-o"]).said
        self.assertNotIn("--out", said)
        self.bad(2, "quantize", self.float_model, "--scheme", "NOPE", "-o", os.path.join(self.root, "nope"))
        self.assertFalse(os.path.exists(os.path.join(self.root, "nope")))


class Files(Case):
    def test_missing_and_damaged(self):
        missing = os.path.join(self.root, "missing")
        self.bad(2, "plan", missing, names=[missing])
        whole = self.read(os.path.join(self.model, "model.safetensors"))
        length = struct.unpack("<Q", whole[:8])[0]
        for name, data in (("cut", whole[:-7]), ("empty", b""), ("huge", b"\xff" * 64), ("lfs", b"version https://git-lfs.github.com/spec/v1\n")):
            path = os.path.join(self.root, name + ".safetensors")
            self.write(path, data)
            for verb in ("plan", "run", "verify", "inspect"):
                self.bad(4, verb, path, names=[name])
        header = os.path.join(self.root, "header")
        os.mkdir(header)
        self.write(os.path.join(header, "config.json"), json.dumps(CONFIG).encode())
        self.write(os.path.join(header, "model.safetensors"), whole[:8 + length])
        self.assertEqual(len(self.document("plan", header)["layers"]), 3)
        self.assertEqual(len(self.document("inspect", header)["tensors"]), 9)
        self.bad(4, "run", header)

    def test_weights_that_cannot_be_read(self):
        broken = os.path.join(self.root, "broken")
        os.mkdir(broken)
        self.write(os.path.join(broken, "config.json"), json.dumps(CONFIG).encode())
        self.bad(4, "run", broken, names=["config.json"])
        weights = os.path.join(broken, "model.safetensors")
        for make in (lambda: os.symlink("nowhere", weights), lambda: os.mkfifo(weights), lambda: os.mkdir(weights)):
            make()
            self.bad(4, "plan", broken, names=[weights])
            os.rmdir(weights) if os.path.isdir(weights) else os.remove(weights)
        self.write(weights + ".index.json", b'{"weight_map":{}}')
        self.bad(4, "plan", broken, names=["weight_map"])

    def test_errors_of_side_files_name_their_path(self):
        model = os.path.join(self.root, "unclear")
        os.mkdir(model)
        config = os.path.join(model, "config.json")
        self.write(os.path.join(model, "model.safetensors"), safetensors(bf16_linear("up_proj", random.Random(self.seed))))
        for data in (b"{", b"[]", b'{"quantization_config": {"quant_method": "nobody knows"}}'):
            self.write(config, data)
            for path in (model, config):
                self.bad(4, "plan", path, names=[config])

    def test_a_packed_width_that_is_no_whole_word(self):
        model = os.path.join(self.root, "packed")
        os.mkdir(model)
        weights = {"num_bits": 4, "type": "int", "strategy": "channel", "symmetric": True}
        self.write(os.path.join(model, "config.json"), json.dumps({"quantization_config": {
            "quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}}).encode())
        rng = random.Random(self.seed)
        tensors = {"up_proj.weight_packed": ("I32", [13, 16], rng.randbytes(13 * 16 * 4)),
                   "up_proj.weight_scale": ("BF16", [13, 1], b"\x80\x3f" * 13)}
        shape = lambda n, k: {"up_proj.weight_shape": ("I64", [2], struct.pack("<2q", n, k))}
        weights = os.path.join(model, "model.safetensors")
        self.write(weights, safetensors(tensors | shape(13, 127)))
        self.assertEqual(self.document("plan", model)["layers"][0]["k"], 127)
        self.good("run", model, "--batch", "1")
        for n, k in ((13, 120), (12, 127), (0, 0), (-1, -1)):
            self.write(weights, safetensors(tensors | shape(n, k)))
            self.good("plan", model)
            self.bad(4, "run", model, names=["up_proj.weight_shape", str(k)])
        self.write(weights, safetensors(tensors))
        self.bad(4, "plan", model, names=["up_proj.weight_shape"])

    def test_a_batch_beyond_memory(self):
        for verb in ("run", "verify"):
            self.bad(1, verb, self.model, "--batch", "2147483647", names=["2147483647", "GB"])

    def test_output_goes_through_links_and_pipes_and_spares_the_model(self):
        words = ["run", self.model, "--batch", "1", "--layers", "lm_head", "--output"]
        real, link, pipe = (os.path.join(self.root, name) for name in ("real.out", "link.out", "pipe.out"))
        self.write(real, b"old")
        os.symlink(real, link)
        self.good(*words, link)
        self.assertTrue(os.path.islink(link))
        self.assertIn(b"lm_head", self.read(real))
        os.mkfifo(pipe)
        reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
        self.good(*words, pipe)
        self.assertEqual(reader.communicate(timeout=60)[0], self.read(real))
        weights = os.path.join(self.model, "model.safetensors")
        before = self.read(weights)
        self.bad(2, *words, weights, names=["--output"])
        self.bad(2, *words, real, f"--json={real}", names=["--json"])
        self.assertEqual(self.read(weights), before)

    def test_input_of_any_name(self):
        source, out = os.path.join(self.root, "activations.act"), os.path.join(self.root, "input.out")
        self.write(source, safetensors({"x": ("F32", [2, K], bytes(8 * K))}))
        self.good("run", self.model, "--input", source, "--output", out)
        self.bad(2, "run", self.model, "--input", source, "--output", source, names=["--output"])

    def test_quantize_and_run_what_it_wrote(self):
        out = os.path.join(self.root, "quantized")
        report = self.document("quantize", self.float_model, "--scheme", "NVFP4", "-o", out)
        self.assertEqual(report["schema"], "gearshift.quantize/1")
        self.assertEqual(self.document("plan", out)["layers"][0]["family"], "nvfp4_w4a4")
        self.good("run", out, "--batch", "1,5")
        self.bad(2, "quantize", self.float_model, "--scheme", "NVFP4", "-o", out)


class Json(Case):
    def test_where_it_goes(self):
        target = os.path.join(self.root, "plan.json")
        on_stdout = self.good("plan", self.model, "--json").out
        self.assertEqual(json.loads(on_stdout)["schema"], "gearshift.plan/1")
        for words in (["--json", self.model], ["--json=-", self.model], ["--batch", "1,8,16,64,256,1024,4096", "--json", self.model]):
            self.assertEqual(json.loads(self.good("plan", *words).out)["layers"], json.loads(on_stdout)["layers"])
        for words in ([self.model, "--json", target], [f"--json={target}", self.model], ["--strict", self.model, "--json", target, "--fuse"],
                      ["--batch", "1", self.model, "--json", target]):
            table = self.good("plan", *words).out
            self.assertIn("NVFP4", table)
            self.assertNotIn("{", table)
            with open(target) as f:
                self.assertEqual(json.load(f)["schema"], "gearshift.plan/1")
            os.remove(target)
        self.assertEqual(json.loads(self.good("plan", self.model, "--json", "--batch", "3").out)["policy"]["batch"], [3])
        self.bad(2, "devices", "--json", "file", names=["--json=FILE"])

    def test_same_bytes_again(self):
        self.assertEqual(self.good("plan", self.model, "--json").out, self.good("plan", self.model, "--json").out)

    def test_no_partial_file(self):
        nowhere = os.path.join(self.root, "no", "such", "folder.json")
        self.bad(1, "plan", self.model, f"--json={nowhere}", names=["folder.json"])
        folder = os.path.join(self.root, "taken")
        os.mkdir(folder)
        self.bad(1, "plan", self.model, f"--json={folder}")
        link, real = os.path.join(self.root, "link.json"), os.path.join(self.root, "real.json")
        self.write(real, b"old")
        os.symlink(real, link)
        self.good("plan", self.model, f"--json={link}")
        self.assertTrue(os.path.islink(link))
        self.assertNotEqual(self.read(real), b"old")
        self.assertEqual([f for f in os.listdir(self.root) if ".tmp" in f], [])

    def test_every_verb_has_a_document(self):
        for verb, *words in (["plan", self.model], ["run", self.model, "--batch", "1"], ["verify", self.model, "--batch", "1"], ["inspect", self.model],
                             ["kernels"], ["devices"], ["doctor"]):
            self.assertEqual(self.document(verb, *words)["schema"], f"gearshift.{verb}/1")
            self.assertTrue(self.good(verb, *words).out.strip())

    def test_measured_rows(self):
        run = self.document("run", self.model, "--batch", "1,17")
        plan = self.document("plan", self.model, "--batch", "1,17")
        self.assertEqual(run["plan_hash"], plan["hash"])
        self.assertEqual(len(run["rows"]), 2 * len(plan["layers"]))
        self.assertEqual([s["m"] for s in run["stack"]], [1, 17])
        for row in run["rows"]:
            self.assertIs(row["ok"], True, row)
            self.assertGreater(row["median_us"], 0)
            self.assertLess(row["relative_error"], row["tolerance"])
        self.assertEqual({row["scheme"] for row in run["rows"]}, {"NVFP4", "UNQUANTIZED"})


class Bench(Case):
    QUICK = ["--memory-limit", "20000000", "--threads", "1"]

    def test_a_shape(self):
        run = self.document("bench", "--shape", "64,128", "--family", "nvfp4_w4a4", "--batch", "1,5", *self.QUICK)
        self.assertEqual(run["schema"], "gearshift.bench/1")
        self.assertEqual([c["name"] for c in run["ceilings"]], ["dram", "fp32", "bf16", "int8"])
        self.assertEqual([(row["shape"], row["m"]) for row in run["rows"]], [("64,128", 1), ("64,128", 5)])
        for row in run["rows"]:
            self.assertTrue(row["ok"] and row["kernel"] and row["p10_us"] <= row["median_us"] <= row["p90_us"], row)
            self.assertGreater(row["floor_us"], 0)

    def test_case_57_a_refused_cell_has_no_number(self):
        words = ["bench", "--shape", "64,128", "--scheme", "NVFP4,W8A8", "--kernel", "cpu_nvfp4_w4a4_dot", "--batch", "1", *self.QUICK]
        ran, refused = self.document(*words)["rows"]
        self.assertIsNone(ran["refused"])
        self.assertIn("not registered for int8_w8a8", refused["refused"])
        self.assertEqual(refused["kernel"], "cpu_nvfp4_w4a4_dot")
        self.assertIsNone(refused["median_us"])
        self.assertIn("refused: ", " ".join(self.good(*words).out.split()))

    def test_a_model(self):
        run = self.document("bench", "--model", self.model, "--batch", "1", *self.QUICK)
        self.assertEqual(sum(row["layers"] for row in run["rows"]), 3)
        self.assertEqual(run["stack"][0]["m"], 1)

    def test_usage(self):
        self.bad(2, "bench", names=["--shape N,K"])
        self.bad(2, "bench", "--shape", "64x", names=["N,K"])
        self.bad(2, "bench", "--shape", "64,64", "--scheme", "NVFP5", names=["did you mean NVFP4"])
        self.bad(2, "bench", "MODEL", "--shape", "64,64", names=["extra word"])
        self.bad(3, "bench", "--shape", "64,64", "--family", "mxfp6", "--linear-backend", "marlin", "--strict", *self.QUICK)


class Page(HTMLParser):
    """Tags that are open, text, and whether anything would be fetched or run."""
    VOID = {"meta", "line", "rect"}

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.text, self.bad = [], set(), "", []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        self.bad += [a for a, v in attributes if a.startswith("on") or a in ("src", "href") or (a not in ("content",) and "url(" in (v or ""))]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID and (not self.open or self.open.pop() != tag):
            self.bad.append("</" + tag)

    def handle_data(self, data):
        self.text += data


class Html(Case):
    def test_pages(self):
        for verb, *words in (["plan"], ["run", "--batch", "1,17"], ["verify", "--batch", "1"]):
            path = os.path.join(self.root, verb + ".html")
            self.assertTrue(self.good(verb, self.model, *words, "--html", path).out.strip())
            page = Page(self.read(path).decode())
            self.assertEqual((page.open, page.bad), ([], []), verb)
            self.assertTrue({"svg", "table", "rect"} <= page.seen)
            self.assertFalse({"script", "link", "img"} & page.seen)
            for word in ("model.layers.0.mlp.up_proj", "NVFP4", "reference", self.document("plan", self.model, *words)["hash"]):
                self.assertIn(word, page.text)

    def test_hostile_names(self):
        model = os.path.join(self.root, "hostile")
        os.mkdir(model)
        rng = random.Random(self.seed)
        name = "a<script>alert('x')</script>&\"\x1b[2J"
        self.write(os.path.join(model, "model.safetensors"), safetensors(bf16_linear(name, rng)))
        self.write(os.path.join(model, "config.json"), json.dumps({"architectures": ["<img src=x onerror=y>"]}).encode())
        path = os.path.join(self.root, "hostile.html")
        self.good("plan", model, "--html", path)
        text = self.read(path).decode()
        page = Page(text)
        self.assertEqual((page.open, page.bad), ([], []))
        self.assertFalse({"script", "img"} & page.seen)
        self.assertIn("<script>alert('x')</script>&", page.text)
        self.assertNotIn("\x1b", text)

    def test_where_it_cannot_go(self):
        self.bad(1, "plan", self.model, "--html", os.path.join(self.root, "no", "page.html"), names=["page.html"])
        self.bad(2, "plan", self.model, "--html", os.path.join(self.model, "model.safetensors"), names=["--html"])
        self.bad(2, "plan", self.model, "--html", "", names=["--html"])
        self.bad(2, "devices", "--html", "x", names=["--html"])


class Output(Case):
    def test_a_full_or_closed_output(self):
        with open("/dev/full", "wb") as full:
            done = self.call("devices", stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.said)
        self.bad(1, "plan", self.model, "--json=/dev/full", names=["/dev/full"])
        done = subprocess.run(["sh", "-c", f'exec "{COMMAND}" devices >&-'], stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"standard output", done.stderr)

    def test_a_closed_pipe(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = self.call("kernels", "--json", stdout=writer)
        os.close(writer)
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.said.startswith("gearshift: error: "), done.said)

    def test_width(self):
        for columns in ("40", "72", "100", "200"):
            for words in (["plan", self.model], ["run", self.model, "--batch", "1"], ["devices"], ["kernels"], ["inspect", self.model]):
                for line in self.good(*words, env={"COLUMNS": columns}).out.splitlines():
                    self.assertLessEqual(len(line), int(columns), words)
        for line in self.good("devices").out.splitlines():
            self.assertLessEqual(len(line), 100)

    def test_unused_names_are_said_once(self):
        done = self.good("plan", self.model, "--disable", "nothing_like_*")
        self.assertEqual(done.said.count("nothing_like_*"), 1)
        self.assertEqual(self.good("plan", self.model, "--disable", "nothing_like_*", "-q").said, "")
        self.assertEqual(self.document("plan", self.model, "--disable", "nothing_like_*")["policy"]["unused"], ["nothing_like_*"])

    def test_verbose_shows_where_options_come_from(self):
        said = self.good("plan", self.model, "-v", "--batch", "3", env={"GEARSHIFT_THREADS": "1"}).said
        self.assertIn("batch = 3 (command line)", said)
        self.assertIn("threads = 1 (environment)", said)


class Diff(Case):
    def plan_file(self, name, *words):
        path = os.path.join(self.root, name)
        self.good("plan", self.model, *words, f"--json={path}", "-q")
        return path

    def test_two_files(self):
        auto, asked = self.plan_file("auto.json"), self.plan_file("asked.json", "--linear-backend", "reference")
        same = self.document("diff", auto, auto)
        self.assertEqual((same["schema"], same["differences"], same["same"]), ("gearshift.diff/1", [], 3))
        done = self.good("diff", auto, asked, "--json=-", code=1)
        differences = json.loads(done.out)["differences"]
        kernels = [d for d in differences if d["field"] == "kernel"]
        self.assertTrue(kernels)
        for d in kernels:
            self.assertIn("reference", d["after"])
            self.assertNotEqual(d["before"], d["after"])
        self.assertEqual(json.loads(done.out)["same"], 0)
        self.assertIn("reference", self.good("diff", auto, asked, code=1).out)

    def test_one_option_twice(self):
        done = self.good("diff", self.model, "--linear-backend", "auto", "--linear-backend", "reference", "--json=-", code=1)
        self.assertEqual({d["field"] for d in json.loads(done.out)["differences"]} & {"kernel"}, {"kernel"})
        self.good("diff", self.model, "--device", "cpu", "--device", "cpu")
        self.good("diff", self.model, "--batch", "1", "--batch", "2")
        self.good("diff", self.model, "--disable", "cpu_*", "--disable", "nothing*", "--device", "cpu", code=1)
        self.bad(3, "diff", self.model, "--device", "cpu", "--device", "sm_90", "--layer", "lm_head=cutlass", "--strict", names=["--device cpu"])

    def test_usage(self):
        plan = self.plan_file("plan.json")
        self.bad(2, "diff", names=["diff"])
        self.bad(2, "diff", self.model, names=["twice"])
        self.bad(2, "diff", self.model, "--device", "cpu", names=["twice"])
        self.bad(2, "diff", self.model, *["--device", "cpu"] * 3, names=["3 times"])
        self.bad(2, "diff", self.model, "--device", "cpu", "--device", "cpu", "--arithmetic", "exact", "--arithmetic", "higher", names=["--device", "--arithmetic"])
        self.bad(2, "diff", plan, plan, plan, names=["extra"])
        text = self.read(plan)
        for name, data in (("half.json", text[:len(text) // 2]), ("none.json", b""), ("other.json", b'{"schema": "gearshift.run/1"}'), ("deep.json", b"[" * 100000)):
            path = os.path.join(self.root, name)
            self.write(path, data)
            self.bad(2, "diff", plan, path, names=[name])
        self.assertNotEqual(self.call("diff", plan, os.path.join(self.root, "missing.json")).returncode, 0)


class Lock(Case):
    def test_a_plan_is_kept_or_refused(self):
        path = os.path.join(self.root, "lock.json")
        asked = ["--linear-backend", "reference", "-q"]
        self.good("plan", self.model, *asked, f"--json={path}")
        locked = self.document("plan", self.model, "--lock", path, *asked)
        self.assertEqual(locked["hash"], json.loads(self.read(path))["hash"])
        kernels = lambda plan: [layer["kernels"] for layer in plan["layers"]]
        self.assertEqual(kernels(self.document("plan", self.model, "--lock", path)), kernels(locked))
        self.assertNotEqual(kernels(self.document("plan", self.model)), kernels(locked))
        self.good("run", self.model, "--lock", path, "--batch", "1")
        said = self.bad(3, "plan", self.model, "--lock", path, "--disable", "reference", names=["--lock", "lock.json", "--disable reference"]).said
        self.assertGreater(len(said.splitlines()), 1)
        self.bad(3, "plan", self.float_model, "--lock", path, names=["locked plan"])
        self.assertEqual(len(self.document("plan", self.model, "--lock", path, "--layers", "*up_proj")["layers"]), 1)
        self.bad(2, "plan", self.model, "--lock", os.path.join(self.model, "config.json"), names=["config.json", "schema"])
        self.assertNotEqual(self.call("plan", self.model, "--lock", os.path.join(self.root, "missing.json")).returncode, 0)


class Registries(Case):
    def test_lint(self):
        lint = self.document("kernels", "--lint")
        self.assertEqual((lint["schema"], lint["registry"], lint["findings"]), ("gearshift.lint/1", "gearshift", []))
        found = json.loads(self.good("kernels", "--lint", "--registry", "vllm", "--json=-", code=1).out)["findings"]
        self.assertTrue({"portable_last", "reachable", "device_gate", "native_before_weight_only"} <= {f["rule"] for f in found})
        self.assertIn("device_gate", self.good("kernels", "--lint", "--registry", "vllm", code=1).out)

    def test_the_support_matrix_is_this_command(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "kernels.md")) as f:
            self.assertEqual(f.read(), self.good("kernels", "--markdown").out, "write it anew: gearshift kernels --markdown > docs/kernels.md")

    def test_exit_codes_with_and_without_strict(self):
        """CASE-60: runs as asked 0/0, runs with a fallback 3/0, does not run 3/3; from headers alone, for absent devices."""
        header = os.path.join(self.root, "header60")
        os.mkdir(header)
        whole = self.read(os.path.join(self.model, "model.safetensors"))
        self.write(os.path.join(header, "model.safetensors"), whole[:8 + struct.unpack("<Q", whole[:8])[0]])
        self.write(os.path.join(header, "config.json"), json.dumps(CONFIG).encode())
        def codes(*words):
            answers = tuple(self.call("plan", header, *words, *strict, "-q").returncode for strict in (["--strict"], []))
            self.assertEqual(answers, tuple(self.call("plan", self.model, *words, *strict, "-q").returncode for strict in (["--strict"], [])), "weights make no difference")
            return answers
        for device in ("sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121", "gfx942", "cpu"):
            with self.subTest(device=device):
                self.assertEqual(codes("--device", device, "--batch", "1,32,8192"), (0, 0))
                self.assertEqual(codes("--device", device, "--linear-backend", "reference"), (0, 0))
                self.assertEqual(codes("--device", device, "--linear-backend", "fbgemm"), (3, 0))
                self.assertEqual(codes("--device", device, "--disable", "*"), (3, 3))


class Configuration(Case):
    def folder_with(self, text):
        folder = tempfile.mkdtemp(dir=self.root)
        self.write(os.path.join(folder, "gearshift.toml"), text.encode())
        return folder

    def test_the_file_is_weakest(self):
        folder = self.folder_with("batch = [9, 3]\nlinear-backend = 'reference'\nlayer = ['lm_head=auto']\nout = 'x'\n")
        policy = lambda *words, **env: self.document("plan", self.model, *words, env=env, cwd=folder)["policy"]
        self.assertEqual(policy()["batch"], [3, 9])
        self.assertEqual(policy()["linear_backend"], "reference")
        self.assertEqual(policy()["layer_overrides"], [{"layers": "lm_head", "backend": "auto"}])
        self.assertEqual(policy(GEARSHIFT_BATCH="5")["batch"], [5])
        self.assertEqual(policy("--batch", "7", GEARSHIFT_BATCH="5")["batch"], [7])
        sources = policy("--batch", "7", GEARSHIFT_STRICT="0")["sources"]
        self.assertEqual({option: source.split(":")[0] for option, source in sources.items()},
                         {"batch": "command line", "strict": "environment", "linear-backend": "gearshift.toml", "layer": "gearshift.toml"})
        explained = self.good("plan", self.model, "--explain", "lm_head", cwd=folder).out
        self.assertIn("gearshift.toml:2", explained)
        options = self.document("doctor", cwd=folder, env={"GEARSHIFT_THREADS": "1"})["options"]
        self.assertEqual([options[o]["source"] for o in ("batch", "threads", "arithmetic")], ["file", "environment", "default"])
        self.assertIn("batch = 9 3 (file, gearshift.toml:1", self.good("plan", self.model, "-v", cwd=folder).said)

    def test_where_the_file_is(self):
        home, xdg = os.path.join(self.root, "home"), os.path.join(self.root, "xdg")
        for folder, batch in ((os.path.join(home, ".config"), 11), (xdg, 13)):
            os.makedirs(os.path.join(folder, "gearshift"))
            self.write(os.path.join(folder, "gearshift", "gearshift.toml"), f"batch = {batch}".encode())
        elsewhere = tempfile.mkdtemp(dir=self.root)
        batch = lambda cwd, **env: self.document("plan", self.model, cwd=cwd, env=env)["policy"]["batch"]
        self.assertEqual(batch(elsewhere, HOME=home, XDG_CONFIG_HOME=""), [11])
        self.assertEqual(batch(elsewhere, HOME=home, XDG_CONFIG_HOME=xdg), [13])
        self.assertEqual(batch(self.folder_with("batch = 17"), HOME=home, XDG_CONFIG_HOME=xdg), [17])

    def test_errors_name_file_and_line(self):
        self.bad(2, "plan", self.model, cwd=self.folder_with("\nbach = 1"), names=["gearshift.toml:2", "bach", "did you mean batch"])
        self.bad(2, "devices", cwd=self.folder_with("strict = "), names=["gearshift.toml:1"])
        self.bad(2, "plan", self.model, cwd=self.folder_with("batch = 0"), names=["gearshift.toml:1", "batch"])
        self.bad(2, "plan", self.model, cwd=self.folder_with("linear-backend = 'nativ'"), names=["nativ", "native"])

    def test_unknown_variables_are_noted(self):
        said = self.good("plan", self.model, env={"GEARSHIFT_LINEAR_BACKED": "native"}).said
        self.assertIn("GEARSHIFT_LINEAR_BACKED", said)
        self.assertIn("GEARSHIFT_LINEAR_BACKEND", said)

    def test_the_page_of_options_is_this_command(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "options.md")) as f:
            self.assertEqual(f.read(), self.good("--help=markdown").out, "write it anew: gearshift --help=markdown > docs/options.md")

    def test_completion(self):
        script = self.good("completion", "bash").out
        def complete(*words):
            program = script + '\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gearshift; printf "%s\\n" "${COMPREPLY[@]}"'
            return subprocess.run(["bash", "-c", program, "bash", *words], stdout=subprocess.PIPE, check=True).stdout.decode().split()
        self.assertEqual(complete("gearshift", "pla"), ["plan"])
        self.assertEqual(complete("gearshift", "plan", "--batc"), [w for w in ("--batch", "--batch-invariant") if w in script.split()])
        self.assertEqual(complete("gearshift", "plan", "--arithmetic", "e"), ["exact"])
        self.assertIn("gb10", complete("gearshift", "plan", "--device", "gb"))
        self.assertIn("native", complete("gearshift", "plan", "--linear-backend", "na"))
        self.assertEqual(complete("gearshift", "inspect", "--batc"), [])
        self.assertIn("export", complete("gearshift", "store", "ex"))
        self.assertIn("vllm", complete("gearshift", "plan", "--registry", "vl"))
        self.assertEqual(complete("gearshift", "plan", "--tp", "a"), ["auto"])
        if shutil.which("fish"):
            script = self.good("completion", "fish").out
            for words, want in (("pla", "plan"), ("plan --arithmetic e", "exact"), ("store ex", "export"), ("plan --registry vl", "vllm")):
                told = subprocess.run(["fish", "-c", f'source -; complete -C "gearshift {words}"'], input=script, stdout=subprocess.PIPE, check=True, text=True).stdout
                self.assertEqual(told.split("\t")[0].strip(), want)
        for shell in ("zsh", "fish"):
            script = self.good("completion", shell).out
            for word in ("plan", "linear-backend", "gb10", "exact"):
                self.assertIn(word, script)
        self.bad(2, "completion", "csh", names=["csh", "bash", "zsh", "fish"])
        self.bad(2, "completion", names=["completion"])


class Precedence(Case):
    def test_command_line_over_environment_over_default(self):
        batch = lambda *words, **env: self.document("plan", self.model, *words, env=env)["policy"]["batch"]
        self.assertEqual(batch(), [1, 8, 16, 64, 256, 1024, 4096])
        self.assertEqual(batch(GEARSHIFT_BATCH="3,5"), [3, 5])
        self.assertEqual(batch("--batch", "7", GEARSHIFT_BATCH="3,5"), [7])
        strict = lambda *words, **env: self.document("plan", self.model, *words, env=env)["policy"]["strict"]
        self.assertIs(strict(), False)
        self.assertIs(strict(GEARSHIFT_STRICT="1"), True)
        self.assertIs(strict(GEARSHIFT_STRICT="0"), False)
        self.bad(2, "plan", self.model, env={"GEARSHIFT_BATCH": "x"}, names=["GEARSHIFT_BATCH"])

    def test_json_by_environment(self):
        target = os.path.join(self.root, "env.json")
        self.assertEqual(json.loads(self.good("devices", env={"GEARSHIFT_JSON": "1"}).out)["schema"], "gearshift.devices/1")
        self.good("devices", env={"GEARSHIFT_JSON": target})
        self.assertTrue(os.path.exists(target))

    def test_instruction_set(self):
        arch = lambda **env: self.document("devices", env=env)["devices"][0]["arch"]
        self.assertNotIn("+", arch(GEARSHIFT_MAX_ISA="portable"))
        self.assertEqual(arch(GEARSHIFT_MAX_ISA="amx"), arch())
        self.bad(2, "kernels", env={"GEARSHIFT_MAX_ISA": "sse9"}, names=["GEARSHIFT_MAX_ISA"])
        self.good("run", self.model, "--batch", "1,2", env={"GEARSHIFT_MAX_ISA": "portable"})

    def test_strict_tells_a_script_what_it_needs(self):
        asked = ["--linear-backend", "bf16=marlin"]
        self.assertIn("bf16", json.dumps(self.document("plan", self.model, *asked)["warnings"]))
        done = self.bad(3, "plan", self.model, *asked, "--strict", names=["lm_head"])
        self.assertGreater(len(done.said.splitlines()), 1)

    def test_case_26_two_kinds_of_cards_in_one_group(self):
        group = self.document("plan", self.model, "--device", "sm_89,sm_120", "--tp", "2")
        self.assertEqual(group["schema"], "gearshift.group/1")
        self.assertEqual([p["device"]["arch"] for p in group["plans"]], ["sm_89", "sm_120"])
        rows = [[row["arithmetic"]["activation"] for row in p["layers"]] for p in group["plans"]]
        self.assertEqual(rows[0], rows[1])
        self.assertEqual(sum(a["rows"] for a in group["activations"]), len(rows[0]))
        self.assertTrue(all(p["schema"] == "gearshift.plan/1" and p["layers"][0]["shard"]["tp"] == 2 for p in group["plans"]))
        self.assertIn("2 devices; all of them multiply the same", " ".join(self.good("plan", self.model, "--device", "sm_89,sm_121").out.split()))
        self.bad(2, "plan", self.model, "--device", "sm_89,sm_12", names=["sm_12", "sm_120"])
        self.bad(2, "plan", self.model, "--device", "sm_89,sm_120", "--explain", "lm_head", names=["--explain"])
        self.bad(2, "run", self.model, "--device", "sm_89,cpu", names=["sm_89,cpu"])

    def test_what_gets_a_kernel_gets_it(self):
        """Every `to get it:` of an explanation, followed."""
        name = "model.layers.0.mlp.up_proj"
        told = " ".join(self.good("plan", self.model, "--explain", name).out.split())
        row = lambda *words: next(r for r in self.document("plan", self.model, *words)["layers"] if r["name"] == name)
        eligible = [c["kernel"] for c in row()["candidates"] if c["verdict"] == "eligible"]
        self.assertGreater(len(eligible), 1)
        for kernel in eligible:
            words = re.search(rf" {kernel} \S+ eligible .*?to get it: (.*)", told).group(1).split(" ")
            # Long lists are wrapped behind their commas.
            option, value = words[0], words[1]
            for word in words[2:]:
                if not value.endswith(","):
                    break
                value += word
            self.assertIn(kernel, [k["kernel"] for k in row(option, value)["kernels"]], f"{option} {value}")

    def test_explain(self):
        text = self.good("plan", self.model, "--explain", "model.layers.0.mlp.up_proj").out
        for candidate in self.document("plan", self.model)["layers"][0]["candidates"]:
            self.assertIn(candidate["verdict"], text)
        self.assertIn("reference", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
