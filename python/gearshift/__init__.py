"""Kernel selection, proof and execution for quantized linear layers.

    plan = gearshift.plan("MODEL")                                  # which kernel runs which layer at which batch size, and why
    layer = gearshift.Linear.from_checkpoint("MODEL", "NAME", plan)  # packed, and proven on this machine
    y = layer(x)                                                    # x: NumPy, PyTorch, CuPy or any DLPack producer

Words and defaults are those of the command `gearshift`: an option --linear-backend is an argument linear_backend. Nothing here
touches a device before it is asked to.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from . import _native
from ._errors import (
    DamagedCheckpointError,
    Error,
    FallbackRefusedError,
    NoKernelError,
    SelfCheckError,
    UnsupportedSchemeError,
    UsageError,
)
from ._linear import Linear
from ._plan import Difference, Plan, diff, plan
from ._store import Store
from ._work import Report, bench, devices, doctor, inspect, kernels, quantize, run, tune, verify

if _native.abi_version() != _native.built_for_abi():
    raise ImportError(
        f"libgearshift.so speaks ABI {_native.abi_version()}, this module {_native.built_for_abi()}: build the package again"
    )

__version__: str = _native.version()
__all__ = [
    "DamagedCheckpointError", "Difference", "Error", "FallbackRefusedError", "Linear", "NoKernelError", "Plan", "Report",
    "SelfCheckError", "Store", "UnsupportedSchemeError", "UsageError", "bench", "devices", "diff", "doctor", "inspect", "kernels",
    "plan", "quantize", "run", "tune", "verify",
]  # fmt: skip


def __getattr__(name: str) -> ModuleType:
    if name == "torch":  # imported when it is first used
        return importlib.import_module(".torch", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
