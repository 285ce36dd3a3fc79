"""Gearshift layers inside PyTorch modules.

    replaced = gearshift.torch.replace_linears(model, "NVFP4")     # or a plan of a quantized checkpoint of this model

A layer is one opaque operator to torch.compile and CUDA graphs: which kernel runs at which batch size is decided inside it.
For inference: it has no gradient.
"""

from __future__ import annotations

import fnmatch
import itertools
import warnings
import weakref
from collections.abc import Mapping
from typing import Any, Union

try:
    import torch
except ImportError as error:
    raise ImportError("gearshift.torch needs PyTorch: pip install torch") from error

from ._errors import UsageError, misused
from ._linear import Linear
from ._options import Value
from ._plan import Plan

# Layers by the number that the operator carries; a module owns its layer.
_layers: weakref.WeakValueDictionary[int, Linear] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)


@torch.library.custom_op("gearshift::linear", mutates_args=())
def _linear(x: torch.Tensor, layer: int, columns: int) -> torch.Tensor:
    target = _layers.get(layer)
    if target is None:
        raise misused(f"layer number {layer}", "none that is open", "a layer whose module is alive")
    y = x.new_empty((*x.shape[:-1], columns))
    target(x if x.is_contiguous() else x.contiguous(), y)
    return y


@_linear.register_fake
def _(x: torch.Tensor, layer: int, columns: int) -> torch.Tensor:
    return x.new_empty((*x.shape[:-1], columns))


class GearshiftLinear(torch.nn.Module):
    """In the place of a torch.nn.Linear."""

    def __init__(self, layer: Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.k, layer.n
        self.layer = layer
        self._number = next(_numbers)
        _layers[self._number] = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.ops.gearshift.linear(x, self._number, self.out_features)
        return result

    def extra_repr(self) -> str:
        return repr(self.layer)


class Replaced(list[str]):
    """Names of the layers that Gearshift runs now; `left` says of the other linear layers why not."""

    def __init__(self) -> None:
        super().__init__()
        self.left: dict[str, str] = {}


Rule = Union[str, Mapping[str, str]]


def _scheme_for(name: str, rules: Mapping[str, str]) -> str | None:
    """Of the patterns that match, the one with most literal characters; of equals the later one."""
    best: tuple[int, str] | None = None
    for pattern, scheme in rules.items():
        literals = len(pattern.replace("*", ""))
        if (pattern == "" or fnmatch.fnmatchcase(name, pattern)) and (best is None or literals >= best[0]):
            best = (literals, scheme)
    return None if best is None else best[1]


def _quantized(linear: torch.nn.Linear, scheme: str, input_amax: float | None, options: Mapping[str, Any]) -> Linear:
    weight = linear.weight.detach().contiguous()
    bias = None if linear.bias is None else linear.bias.detach().contiguous()
    return Linear.from_float(weight, bias, scheme=scheme, input_amax=input_amax, **options)


def _from_plan(linear: torch.nn.Linear, name: str, plan: Plan, names: set[str]) -> Linear | None:
    # Checkpoints and modules differ in outer names: "encoder.layer.0..." and "bert.encoder.layer.0...".
    found = [n for n in names if n == name or n.endswith("." + name) or name.endswith("." + n)]
    if not found:
        return None
    layer = Linear.from_checkpoint(plan.model, max(found, key=len), plan)
    if (layer.n, layer.k) != (linear.out_features, linear.in_features):
        raise misused(name, f"{linear.out_features} x {linear.in_features}", f"{layer.n} x {layer.k}, as {plan.model} has")
    return layer


def replace_linears(
    module: torch.nn.Module,
    plan_or_scheme: Plan | Rule,
    *,
    skip: tuple[str, ...] = ("lm_head", "*.lm_head"),
    input_amax: float | None = None,
    **options: Value,
) -> Replaced:
    """Puts a GearshiftLinear in the place of every torch.nn.Linear of `module`, where its weights lie.

    With a scheme ("NVFP4", or {"*.mlp.*": "NVFP4", "*.self_attn.*": "FP8_DYNAMIC"}) the float weights are quantized and freed
    one after the other; `options` are those of gearshift.plan(). With a plan, layers come from the quantized checkpoint it was
    made for, by name. Layers that a scheme cannot code, that the checkpoint does not have, or that match `skip`, stay as they
    are: `left` of the result says which and why.
    """
    if not isinstance(plan_or_scheme, (Plan, str, Mapping)):
        raise misused("replace_linears", type(plan_or_scheme).__name__, "a plan, a scheme, or schemes by pattern")
    if isinstance(module, torch.nn.Linear):
        raise misused("replace_linears", "a linear layer", "a module that holds linear layers")
    plan = plan_or_scheme if isinstance(plan_or_scheme, Plan) else None
    if plan is not None and options:
        raise misused("replace_linears", f"a plan and {', '.join(options)}", "one of the two", "give options to gearshift.plan()")
    rules: Mapping[str, str] = {} if isinstance(plan_or_scheme, Plan) else (
        {"": plan_or_scheme} if isinstance(plan_or_scheme, str) else plan_or_scheme
    )  # fmt: skip
    names = {part for row in (plan.layers if plan else []) for part in (row["name"], *row["parts"])}
    replaced = Replaced()
    linears = [(name, child) for name, child in module.named_modules() if isinstance(child, torch.nn.Linear)]
    for name, linear in linears:
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in skip):
            replaced.left[name] = "skipped"
            continue
        layer: Linear | None
        if plan is not None:
            layer = _from_plan(linear, name, plan, names)
            if layer is None:
                replaced.left[name] = f"{plan.model} has no such layer"
                continue
        else:
            scheme = _scheme_for(name, rules)
            if scheme is None:
                replaced.left[name] = "no pattern matches"
                continue
            try:
                layer = _quantized(linear, scheme, input_amax, options)
            except UsageError as error:
                if error.subject != "linear":  # what was asked for is wrong, not what this layer can take
                    raise
                replaced.left[name] = str(error)
                continue
        parent, _, last = name.rpartition(".")
        setattr(module.get_submodule(parent), last, GearshiftLinear(layer))
        replaced.append(name)
    unable = {name: why for name, why in replaced.left.items() if why != "skipped"}
    if unable:
        first = next(iter(unable))
        warnings.warn(f"{len(unable)} linear layers stay as they are, such as {first}: {unable[first]}", stacklevel=2)
    return replaced


__all__ = ["GearshiftLinear", "Replaced", "replace_linears"]
