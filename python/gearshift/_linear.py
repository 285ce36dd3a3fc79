"""One linear layer, ready to be called."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from . import _native
from ._arrays import CUDA, Operand, device_text, new_output, operand, stream_of, torch_type
from ._errors import misused
from ._options import Path, Value, options_of, path_of, text_of
from ._plan import Plan

_DTYPES = {(2, 32): "fp32", (2, 16): "fp16", (4, 16): "bf16"}


def _scheme_text(scheme: str | Mapping[str, Any]) -> str:
    if isinstance(scheme, str):
        return text_of("scheme", scheme)
    if isinstance(scheme, Mapping):
        return json.dumps(scheme)
    raise misused("scheme", type(scheme).__name__, "a preset's name, or a quantization_config as a dict")


def _on_host(subject: str, array: Any) -> tuple[Operand, str]:
    """The array in host memory, and where it came from: "cpu", "cuda:1" ..."""
    found = operand(subject, array)
    if found.device[0] != CUDA:
        return found, "cpu"
    if found.kind == "torch":
        return operand(subject, array.detach().cpu()), f"cuda:{found.device[1]}"
    if found.kind == "cupy":
        return operand(subject, array.get()), f"cuda:{found.device[1]}"
    raise misused(subject, f"a {found.kind} array on a GPU", "host memory", "copy it to the CPU, and say device='cuda'")


class Linear:
    """y = x W^T + bias with packed weights and kernels that were proven on this machine for every batch range of the plan.

    Calls may come from several threads at once. bf16, fp16 and fp32 go in and come out; the first call with a type that the plan
    was not made for proves the kernels for it first. Closed by close(), at the end of a `with` block, or with its last
    reference.
    """

    def __init__(self, native: _native.Linear, name: str) -> None:
        self._native: _native.Linear | None = native
        self._facts = native.about()
        self._name = name

    # ---- how to make one

    @classmethod
    def from_checkpoint(cls, model: Path, name: str, plan: Plan | None = None, **options: Value) -> Linear:
        """A row of the plan by name ("model.layers.0.mlp.gate_up_proj"), or one module of a fused row ("...gate_proj").

        Without a plan one is made with `options`, those of gearshift.plan().
        """
        path = path_of("model", model)
        if plan is None:
            plan = Plan(_native.Plan(path, options_of(options)), path)
        elif not isinstance(plan, Plan):
            raise misused("plan", type(plan).__name__, "a plan of gearshift.plan()")
        elif options:
            raise misused("from_checkpoint", f"a plan and {', '.join(options)}", "one of the two", "give options to gearshift.plan()")
        elif plan.model != path:
            raise misused("model", path, f"{plan.model}, for which the plan was made")
        return cls(_native.Linear.load(plan._open(), text_of("name", name)), name)

    @classmethod
    def from_tensors(
        cls,
        weight: Any,
        weight_scale: Any = None,
        *,
        scheme: str | Mapping[str, Any],
        bias: Any = None,
        tensors: Mapping[str, Any] | None = None,
        **options: Value,
    ) -> Linear:
        """A layer whose tensors are quantized already, in host memory. It runs on the CPU unless `device` says otherwise.

        `scheme`: a preset of compressed-tensors ("NVFP4", "FP8_DYNAMIC" ...), or the quantization_config of any writer as a dict.
        `tensors`: what else the writer stores, by the names behind the layer's: weight_global_scale, input_global_scale,
        weight_zero_point, g_idx ... Codes of types that NumPy lacks may come as uint8. `dtype` (an option of gearshift.plan())
        says what activations will be: "bf16" unless given.
        """
        named = {"weight": weight, "weight_scale": weight_scale, "bias": bias, **(tensors or {})}
        given = [(text_of("tensors", name), operand(name, array)) for name, array in named.items() if array is not None]
        native = _native.Linear.from_tensors(
            _scheme_text(scheme), [(name, o.producer, *o.type) for name, o in given], options_of({"device": "cpu", **options})
        )
        return cls(native, "linear")

    @classmethod
    def from_float(
        cls, weight: Any, bias: Any = None, *, scheme: str, input_amax: float | None = None, **options: Value
    ) -> Linear:
        """Quantizes a float matrix [N,K] as `gearshift quantize` does. The layer runs where the matrix lies unless `device` says
        otherwise.

        `input_amax`: the largest magnitude of the activations, for schemes that store a scale of them (NVFP4, FP8). Activations
        have the weight's type unless `dtype` says otherwise.
        """
        w, device = _on_host("weight", weight)
        b = None if bias is None else _on_host("bias", bias)[0]
        options = {"device": device, **options}
        native = _native.Linear.quantize(
            text_of("scheme", scheme), w.producer, w.type, b and b.producer, b.type if b else (-1, 0), input_amax or 0.0, options_of(options)
        )
        return cls(native, "linear")

    # ---- what it is

    def _open(self) -> _native.Linear:
        if self._native is None:
            raise misused(f"layer {self._name}", "a closed layer", "an open one")
        return self._native

    @property
    def name(self) -> str:
        return self._name

    @property
    def n(self) -> int:
        """Output features."""
        return self._facts["n"]

    @property
    def k(self) -> int:
        """Input features."""
        return self._facts["k"]

    @property
    def experts(self) -> int:
        """How many experts it holds; 0 for a linear layer."""
        return self._facts["experts"]

    @property
    def dtype(self) -> str:
        """Of the activations it was planned for: "fp32", "fp16" or "bf16"."""
        return _DTYPES[self._facts["dtype"]]

    @property
    def device(self) -> str:
        """Where activations must lie: "cpu", "cuda:0" ..."""
        return device_text((self._facts["device_type"], self._facts["device_id"]))

    def to_json(self) -> str:
        """The plan of this layer alone, as it runs."""
        return self._open().show("json", 0)

    @property
    def plan(self) -> dict[str, Any]:
        """Its row of that plan: kernels by batch range, candidates with their verdicts, memory."""
        row: dict[str, Any] = json.loads(self.to_json())["layers"][0]
        return row

    def __repr__(self) -> str:
        if self._native is None:
            return f"Linear({self._name}, closed)"
        row = self.plan
        ranges = [
            f"{r['m_min']}{'-' if r['m_max'] is None else '' if r['m_max'] == r['m_min'] else '-' + str(r['m_max'])} {r['kernel']}"
            for r in row["kernels"]
        ]
        return f"Linear({self._name}, {self.n} x {self.k}, {row['family']}, {self.device}, {self.dtype}: {', '.join(ranges)})"

    # ---- running it

    def __call__(self, x: Any, out: Any = None, *, expert: int = 0, stream: Any = None) -> Any:
        """x [..., K] -> [..., N] in x's type, from x's library and on its device; into `out` where it is given.

        On a GPU the call is queued on x's current stream (`stream`: on that one) and returns at once. `expert`: of an expert layer.
        """
        native = self._open()
        place = (self._facts["device_type"], self._facts["device_id"])
        source = operand("x", x, place)
        if out is None:
            self._check_columns(source)
            out = new_output(source, self.n)
        target = operand("out", out, place)
        queue = stream_of(source, stream)
        scratch, address, size = self._scratch(source) if stream is None else (None, 0, 0)
        if not (isinstance(expert, int) and abs(expert) < 1 << 63):
            raise misused("expert", repr(expert), "the number of an expert")
        native.run(source.producer, source.type, target.producer, target.type, expert, address, size, queue)
        del scratch  # only now: calls on its stream come after this one
        return out

    def _check_columns(self, x: Operand) -> None:
        shape = tuple(getattr(x.array, "shape", ()))
        if not shape or shape[-1] != self.k:
            raise misused("x", f"shape {list(shape)}", f"[..., {self.k}] for layer {self._name}")

    def _scratch(self, x: Operand) -> tuple[Any, int, int]:
        # PyTorch's allocator knows its current stream and graphs; elsewhere the library keeps scratch of its own.
        kind = torch_type(x.array) if x.kind == "torch" and x.device[0] == CUDA else None
        if kind is None or self._facts["device_type"] != CUDA:
            return None, 0, 0
        rows = x.array.numel() // max(1, x.array.shape[-1]) if x.array.dim() else 0
        size = self._open().prepare(kind, rows)
        if size == 0:
            return None, 0, 0
        scratch = x.array.new_empty(size, dtype=sys.modules["torch"].uint8)
        return scratch, scratch.data_ptr(), size

    def close(self) -> None:
        """Frees the packed weights, as soon as calls in other threads have returned."""
        self._native = None

    def __enter__(self) -> Linear:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
