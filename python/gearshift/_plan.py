"""Plans: which kernel runs which layer at which batch size, and why."""

from __future__ import annotations

import json
from typing import Any

from . import _native
from ._errors import misused
from ._options import Path, Value, options_of, path_of, text_of
from ._show import Text, page_in_notebook, width


class Difference:
    """What changed from one plan to another; true where something did."""

    def __init__(self, before: str, after: str) -> None:
        self._before, self._after = before, after
        self._count, self._json = _native.diff(before, after, "json", 0)

    def __bool__(self) -> bool:
        return self._count > 0

    def __len__(self) -> int:
        return self._count

    def to_json(self) -> str:
        return self._json

    def to_dict(self) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(self._json)
        return result

    def __str__(self) -> str:
        return _native.diff(self._before, self._after, "text", width())[1]

    __repr__ = __str__


class Plan:
    """Made by gearshift.plan(). Prints as the table of `gearshift plan`."""

    def __init__(self, native: _native.Plan, model: str) -> None:
        self._native: _native.Plan | None = native
        self._model = model
        self._json: str | None = None

    def _open(self) -> _native.Plan:
        if self._native is None:
            raise misused("plan", "a closed plan", "an open one")
        return self._native

    @property
    def model(self) -> str:
        return self._model

    @property
    def hash(self) -> str:
        """32 hexadecimal digits, equal for equal decisions."""
        return self._open().hash()

    def to_json(self) -> str:
        """The document gearshift.plan/1: the bytes of `gearshift plan --json`, where the source of an option is "call"."""
        if self._json is None:
            self._json = self._open().show("json", 0)
        return self._json

    def to_dict(self) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(self.to_json())
        return result

    def to_html(self) -> str:
        return self._open().show("html", 0)

    @property
    def layers(self) -> list[dict[str, Any]]:
        """Rows in the plan's order: name, family, n, k, kernels, candidates ..."""
        layers: list[dict[str, Any]] = self.to_dict()["layers"]
        return layers

    @property
    def warnings(self) -> list[dict[str, Any]]:
        warnings: list[dict[str, Any]] = self.to_dict()["warnings"]
        return warnings

    def explain(self, name: str) -> str:
        """Every candidate of a layer, stage by stage, with the reason."""
        return Text(self._open().explain(text_of("explain", name), width()))

    def diff(self, other: Plan | str) -> Difference:
        """What changes from this plan to another one, or to the text of one's JSON."""
        if not isinstance(other, (Plan, str)):
            raise misused("diff", type(other).__name__, "a plan, or the JSON of one")
        return Difference(self.to_json(), other if isinstance(other, str) else other.to_json())

    def close(self) -> None:
        """Lets go of the model; layers that were loaded from it stay."""
        self._native = None

    def __enter__(self) -> Plan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        return self._open().show("text", width())

    def __repr__(self) -> str:
        return "<closed plan>" if self._native is None else str(self)

    def _repr_html_(self) -> str:
        return page_in_notebook(self.to_html())


def plan(
    model: Path,
    *,
    device: str | None = None,
    linear_backend: Value = None,
    batch: Value = None,
    tp: Value = None,
    registry: Path | None = None,
    strict: bool | None = None,
    **options: Value,
) -> Plan:
    """Plans a checkpoint (a directory, a .safetensors file) or a config.json; reads headers only.

    Further options are those of `gearshift plan` (docs/options.md) with '_' for '-': dtype="fp32", disable=["*_emulation"],
    layer={"*.mlp.*": "native"}, selection="static" ...
    """
    given: dict[str, Value] = {
        "device": device, "linear_backend": linear_backend, "batch": batch, "tp": tp, "registry": registry, "strict": strict,
        **options,
    }  # fmt: skip
    path = path_of("model", model)
    return Plan(_native.Plan(path, options_of(given)), path)


def diff(before: Plan | str, after: Plan | str) -> Difference:
    """Compares two plans, or the texts of their JSON."""
    texts = [plan if isinstance(plan, str) else plan.to_json() for plan in (before, after)]
    return Difference(*texts)
