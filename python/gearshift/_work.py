"""Work on whole models: what the verbs of the command do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable, Union

from . import _native
from ._options import Path, Value, options_of, path_of
from ._show import page_in_notebook, width

Progress = Callable[[int, int, str], object]


class Report:
    """What some work found. Prints as the command's table; iterates over its rows."""

    def __init__(self, native: _native.Report, rows: str) -> None:
        self._native = native
        self._rows = rows
        self._json: str | None = None

    @property
    def passed(self) -> bool:
        """Whether every check that was made passed."""
        return self._native.passed()

    def to_json(self) -> str:
        """The document that the command writes with --json."""
        if self._json is None:
            self._json = self._native.show("json", 0)
        return self._json

    def to_dict(self) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(self.to_json())
        return result

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.to_dict()[self._rows]
        return rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: str) -> Any:
        return self.to_dict()[key]

    def __str__(self) -> str:
        return self._native.show("text", width())

    __repr__ = __str__


class PageReport(Report):
    """One that has an HTML page as well."""

    def to_html(self) -> str:
        return self._native.show("html", 0)

    def _repr_html_(self) -> str:
        return page_in_notebook(self.to_html())


def work(
    verb: str, words: Sequence[str], options: Mapping[str, Value], progress: Progress | None = None
) -> _native.Report:
    return _native.Report(verb, list(words), options_of(options), progress)


def run(model: Path, *, progress: Progress | None = None, **options: Value) -> PageReport:
    """Runs the planned kernels here, checks each against the reference, and times them."""
    return PageReport(work("run", [path_of("model", model)], options, progress), "rows")


def verify(model: Path, *, progress: Progress | None = None, **options: Value) -> PageReport:
    """Checks every kernel that the plan can use; `passed` says whether all gave right numbers."""
    return PageReport(work("verify", [path_of("model", model)], options, progress), "rows")


def tune(model: Path, *, progress: Progress | None = None, **options: Value) -> Report:
    """Measures the kernels that the plan can use and keeps each result at once; Ctrl-C loses nothing."""
    return Report(work("tune", [path_of("model", model)], options, progress), "rows")


def bench(*, progress: Progress | None = None, **options: Value) -> Report:
    """Times kernels on made-up weights: shape=(4096, 4096), family="nvfp4_w4a4", or model="DIR"."""
    return Report(work("bench", [], options, progress), "rows")


def quantize(
    model: Path,
    out: Path,
    scheme: Union[str, Mapping[str, str], Sequence[str]],
    *,
    progress: Progress | None = None,
    **options: Value,
) -> Report:
    """Writes a quantized checkpoint to `out` from a float one. `scheme`: "NVFP4", or {"*.mlp.*": "NVFP4", "*": "FP8_DYNAMIC"}."""
    given: dict[str, Value] = {"out": out, "scheme": scheme, **options}
    return Report(work("quantize", [path_of("model", model)], given, progress), "layers")


def inspect(model: Path) -> Report:
    """Tensors, schemes and sizes of a checkpoint."""
    return Report(work("inspect", [path_of("model", model)], {}), "layers")


def kernels(**options: Value) -> Report:
    """Every kernel, what it accepts, and whether it runs here; registry="vllm" for that engine's."""
    return Report(work("kernels", [], options), "kernels")


def devices(**options: Value) -> Report:
    """Every device that can be planned for, this machine's first."""
    return Report(work("devices", [], options), "devices")


def doctor(**options: Value) -> Report:
    """What is here and whether it works: device, build, store, a launch of every kernel."""
    return Report(work("doctor", [], options), "launch_tests")
