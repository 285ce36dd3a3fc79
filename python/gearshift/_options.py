"""Arguments of functions as options of the command."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Union

from ._errors import misused

Path = Union[str, "os.PathLike[str]"]
Value = Union[None, str, int, float, bool, "os.PathLike[str]", Sequence["Value"], Mapping[str, str]]

# One text an occurrence; all other options take lists with commas.
_REPEATED = {"layer", "scheme", "shape"}


def text_of(subject: str, value: object) -> str:
    """A text that C can hold."""
    if not isinstance(value, str):
        raise misused(subject, type(value).__name__, "a text")
    if "\0" in value:
        raise misused(subject, repr(value), "a text without zero bytes")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise misused(subject, repr(value), "a text that UTF-8 can encode") from None
    return value


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, (str, os.PathLike)):
        return text_of(name, os.fspath(value))
    raise misused(name, type(value).__name__, "a text, a number, a path, or several of them")


def _texts(name: str, value: Value) -> list[str]:
    if isinstance(value, Mapping):
        # {"*.mlp.*": "NVFP4"}, {"fp8_w8a8": "native"}; "" and "*" stand for everything, which `layer` has no other word for.
        everything = () if name == "layer" else ("", "*")
        pairs = [_text(name, v) if k in everything else f"{k}={_text(name, v)}" for k, v in value.items()]
        return pairs if name in _REPEATED else [",".join(pairs)]
    if isinstance(value, Sequence) and not isinstance(value, str):
        if name == "shape":
            several = [v for v in value if isinstance(v, Sequence) and not isinstance(v, str)]
            return [",".join(_text(name, n) for n in v) for v in several] or [",".join(_text(name, n) for n in value)]
        texts = [_text(name, v) for v in value]
        return texts if name in _REPEATED else [",".join(texts)]
    return [_text(name, value)]


def options_of(arguments: Mapping[str, Value]) -> list[tuple[str, str]]:
    """linear_backend="native" -> ("linear-backend", "native"). None: not given."""
    options = []
    for argument, value in arguments.items():
        if value is None:
            continue
        name = argument.rstrip("_").replace("_", "-")
        options += [(name, text) for text in _texts(name, value)]
    return options


def path_of(subject: str, path: Path) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise misused(subject, type(path).__name__, "a path")
    return text_of(subject, os.fspath(path))
