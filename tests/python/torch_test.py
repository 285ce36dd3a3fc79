"""Gearshift layers inside PyTorch modules."""
import os
import threading
import unittest
import warnings

import gearshift
import gearshift.torch
import torch
from made import SEED, Case


class Block(torch.nn.Module):
    def __init__(self, width=64, hidden=96):
        super().__init__()
        self.up_proj = torch.nn.Linear(width, hidden, bias=False)
        self.gate_proj = torch.nn.Linear(width, hidden, bias=False)
        self.down_proj = torch.nn.Linear(hidden, width)

    def forward(self, x):
        return x + self.down_proj(torch.nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.Sequential(Block(), Block())
        self.lm_head = torch.nn.Linear(64, 32)

    def forward(self, x):
        return self.lm_head(self.blocks(x))


class TorchTest(Case):
    def setUp(self):
        torch.manual_seed(SEED)

    def near_tensor(self, y, expected, bound):
        self.assertEqual((y.dtype, y.shape), (expected.dtype, expected.shape))
        self.near(y.detach().float().numpy(), expected.detach().float().numpy(), bound)

    @torch.no_grad()
    def test_types(self):
        linear = torch.nn.Linear(64, 48)
        for dtype, bound in ((torch.float32, 1e-5), (torch.float16, 5e-3), (torch.bfloat16, 3e-2)):
            half = torch.nn.Linear(64, 48, dtype=dtype)
            half.load_state_dict({k: v.to(dtype) for k, v in linear.state_dict().items()})
            layer = gearshift.Linear.from_float(half.weight, half.bias, scheme="UNQUANTIZED", device="cpu")
            x = torch.randn(3, 5, 64, dtype=dtype)
            self.near_tensor(layer(x), half.float()(x.float()).to(dtype), bound)
            out = torch.full((3, 5, 48), torch.nan, dtype=dtype)
            self.assertIs(layer(x, out), out)
            self.assertFalse(out.isnan().any())
        x = torch.randn(4, 64, requires_grad=True)
        with torch.enable_grad():
            self.assertEqual(layer(x).shape, (4, 48))

    @torch.no_grad()
    def test_replace_with_a_scheme(self):
        model = Model()
        x = torch.randn(2, 7, 64)
        expected = model(x)
        replaced = gearshift.torch.replace_linears(model, {"*": "INT8", "blocks.1.*": "UNQUANTIZED"}, device="cpu")
        self.assertEqual(len(replaced), 6)
        self.assertEqual(replaced.left, {"lm_head": "skipped"})
        self.assertIsInstance(model.blocks[0].up_proj, gearshift.torch.GearshiftLinear)
        self.assertIn("96 x 64", str(model))
        self.near_tensor(model(x), expected, 0.05)

    @torch.no_grad()
    def test_replace_from_a_checkpoint(self):
        folder, tensors = self.float_model()
        out = os.path.join(self.folder, "quantized")
        gearshift.quantize(folder, out, "INT8")
        model = torch.nn.Module()
        model.model = torch.nn.Module()
        model.model.layers = torch.nn.ModuleList(torch.nn.Module() for _ in range(2))
        for i, layer in enumerate(model.model.layers):
            layer.mlp = Block()
            layer.other = torch.nn.Linear(64, 64)
        with warnings.catch_warnings(record=True) as seen, gearshift.plan(out, device="cpu") as plan:
            warnings.simplefilter("always")
            replaced = gearshift.torch.replace_linears(model, plan)
        self.assertEqual(len(replaced), 6)
        self.assertEqual(set(replaced.left), {"model.layers.0.other", "model.layers.1.other"})
        self.assertIn("no such layer", str(seen[-1].message))
        x = torch.randn(5, 64)
        weight = torch.from_numpy(tensors["model.layers.1.mlp.gate_proj.weight"])
        self.near_tensor(model.model.layers[1].mlp.gate_proj(x), x @ weight.T, 0.03)
        # Shapes of another model.
        other = torch.nn.Module()
        other.model = torch.nn.Module()
        other.model.layers = torch.nn.ModuleList([torch.nn.Module()])
        other.model.layers[0].mlp = Block(width=32)
        with gearshift.plan(out, device="cpu") as plan:
            self.refused(gearshift.UsageError, lambda: gearshift.torch.replace_linears(other, plan), "96 x 32", "96 x 64")

    @torch.no_grad()
    def test_what_a_scheme_cannot_code_stays(self):
        model = Model()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            replaced = gearshift.torch.replace_linears(model, "W4A16", device="cpu")  # groups of 128
        self.assertEqual(list(replaced), [])
        self.assertIn("128", replaced.left["blocks.0.up_proj"])
        self.assertIn("6 linear layers", str(seen[-1].message))
        self.refused(gearshift.UsageError, lambda: gearshift.torch.replace_linears(model, "INT9"), "INT9")
        self.refused(gearshift.UsageError, lambda: gearshift.torch.replace_linears(model.lm_head, "INT8"), "linear layer")
        self.refused(gearshift.UsageError, lambda: gearshift.torch.replace_linears(model, 3), "int")

    @torch.no_grad()
    def test_one_operator_for_the_compiler(self):
        model = Model()
        gearshift.torch.replace_linears(model, "INT8", device="cpu")
        x = torch.randn(6, 64)
        expected = model(x)
        operators = []

        def look(graph, example):
            operators.extend(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
            return graph.forward

        compiled = torch.compile(model, backend=look, fullgraph=True)
        self.assertTrue(torch.equal(compiled(x), expected))
        self.assertEqual(sum("gearshift.linear" in name for name in operators), 6)
        eager = torch.compile(model, backend="aot_eager", fullgraph=True)
        self.assertTrue(torch.equal(eager(x), expected))
        torch.library.opcheck(torch.ops.gearshift.linear.default, (x, model.blocks[0].up_proj._number, 96))

    @torch.no_grad()
    def test_misuse(self):
        layer = gearshift.Linear.from_float(torch.randn(48, 64), scheme="INT8", device="cpu")
        self.refused(gearshift.UsageError, lambda: layer(torch.randn(3, 64, dtype=torch.float64)), "F64")
        self.refused(gearshift.UsageError, lambda: layer(torch.randn(3, 63)), "63", "64")
        self.refused(gearshift.UsageError, lambda: layer(torch.randn(3, 64), torch.empty(3, 48, dtype=torch.float16)), "F16")
        self.refused(gearshift.UsageError, lambda: layer(torch.randn(64, 3).T), "contiguous")
        module = gearshift.torch.GearshiftLinear(layer)
        number = module._number
        del module, layer
        self.refused(gearshift.UsageError, lambda: torch.ops.gearshift.linear(torch.randn(3, 64), number, 48), "alive")

    @torch.no_grad()
    def test_four_threads(self):
        model = Model()
        gearshift.torch.replace_linears(model, "NVFP4", device="cpu")
        x = torch.randn(17, 64)
        expected, wrong = model(x), []

        def call():
            for _ in range(50):
                if not torch.equal(model(x), expected):
                    wrong.append(1)

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
