"""Arrays of callers: NumPy, PyTorch, CuPy, and whatever else has __dlpack__. None of them is imported here."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from ._errors import misused

CPU, CUDA = 1, 2  # DLDeviceType
_CUDA_HOST, _CUDA_MANAGED = 3, 13
# Types that NumPy and older versions of DLPack lack: code and bits in DLPack 1.1, and an integer of the same size.
_EXTENDED = {
    "bfloat16": (4, 16, "uint16"),
    "float8_e4m3fn": (10, 8, "uint8"),
    "float8_e5m2": (12, 8, "uint8"),
    "float8_e8m0fnu": (14, 8, "uint8"),
}
_TORCH_CODES = {"torch.float32": (2, 32), "torch.float16": (2, 16), "torch.bfloat16": (4, 16)}
_OWN = (-1, 0)  # the producer says its type


class Operand(NamedTuple):
    array: Any
    producer: object  # what the compiled module reads
    type: tuple[int, int]  # code and bits, or _OWN
    kind: str  # "numpy", "torch", "cupy" or another module's name
    device: tuple[int, int]


def _kind(array: object) -> str:
    kind = type(array).__module__.partition(".")[0]
    torch = sys.modules.get("torch")
    return "torch" if torch is not None and isinstance(array, torch.Tensor) else kind


def device_text(device: tuple[int, int]) -> str:
    return "cpu" if device[0] == CPU else f"cuda:{device[1]}" if device[0] == CUDA else f"DLPack device {device}"


def operand(subject: str, array: Any, wanted: tuple[int, int] | None = None) -> Operand:
    """`wanted`: where it must lie, asked before the array is looked into."""
    kind = _kind(array)
    if kind == "torch":
        _check_device(subject, (CUDA, array.device.index) if array.is_cuda else (CPU, 0), wanted)
        return _torch_operand(array)
    if kind in ("numpy", "ml_dtypes"):
        _check_device(subject, (CPU, 0), wanted)
        extended = _EXTENDED.get(str(getattr(array, "dtype", "")))
        if extended is not None:
            return Operand(array, array.view(extended[2]), extended[:2], "numpy", (CPU, 0))
        dtype = getattr(array, "dtype", None)
        if dtype is None or dtype.kind not in "biufc" or not dtype.isnative:
            raise misused(subject, f"{kind}'s {dtype if dtype is not None else type(array).__name__}", "an array of numbers, in this machine's byte order")
        return Operand(array, array, _OWN, "numpy", (CPU, 0))
    if not hasattr(array, "__dlpack__"):
        raise misused(subject, type(array).__name__, "an array or tensor with __dlpack__")
    device = _device_of(subject, array)
    _check_device(subject, device, wanted)
    return Operand(array, _capsule(subject, array, kind, device), _OWN, kind, device)


def _capsule(subject: str, array: Any, kind: str, device: tuple[int, int]) -> object:
    """What the producer exports, asked for here so that each capsule is used once and what the producer raises is heard."""
    # Calls are queued on a stream that is known here: the producer need not wait for anything.
    stream = {"stream": -1} if device[0] == CUDA else {}
    try:
        try:
            capsule = array.__dlpack__(max_version=(1, 1), **stream)  # with a flag for memory that must not be written
        except TypeError:  # of a producer that knows no versions
            capsule = array.__dlpack__(**stream)
    except Exception as error:
        raise misused(subject, f"{kind}: {error}", "an array or tensor that DLPack can export") from error
    if type(capsule).__name__ != "PyCapsule":
        raise misused(subject, f"a __dlpack__ that gives {type(capsule).__name__}", "one that gives a capsule")
    return capsule


def _device_of(subject: str, array: Any) -> tuple[int, int]:
    if not hasattr(array, "__dlpack_device__"):
        return (CPU, 0)
    place = array.__dlpack_device__()
    try:
        kind, index = int(place[0]), int(place[1])
    except (TypeError, ValueError, IndexError):
        raise misused(subject, f"a __dlpack_device__ of {place!r}", "a pair of numbers") from None
    return (CPU, 0) if kind == _CUDA_HOST else (CUDA, index) if kind == _CUDA_MANAGED else (kind, index)


def _check_device(subject: str, found: tuple[int, int], wanted: tuple[int, int] | None) -> None:
    if wanted is not None and found != wanted:
        raise misused(subject, device_text(found), device_text(wanted), "the option device says where a layer runs")


def _torch_operand(tensor: Any) -> Operand:
    plain = tensor.detach()
    device = (CUDA, tensor.device.index) if tensor.is_cuda else (CPU, 0)
    kind = _OWN
    extended = _EXTENDED.get(str(tensor.dtype).replace("torch.", ""))
    if extended is not None and extended[1] == 8:
        plain = plain.view(sys.modules["torch"].uint8)
        kind = extended[:2]
    producer = plain.__dlpack__(stream=-1) if tensor.is_cuda else plain
    return Operand(tensor, producer, kind, "torch", device)


def new_output(x: Operand, columns: int) -> Any:
    """An array like x with another last dimension, from x's own library."""
    shape = (*tuple(x.array.shape)[:-1], columns)
    if x.kind == "numpy":
        import numpy

        return numpy.empty(shape, dtype=x.array.dtype)
    if x.kind == "torch":
        return x.array.new_empty(shape, requires_grad=False)
    if hasattr(x.array, "__array_namespace__"):
        namespace = x.array.__array_namespace__()
        return namespace.empty(shape, dtype=x.array.dtype, device=x.array.device)
    raise misused("out", "nothing", f"a tensor to write, because {x.kind} does not say how to make one")


def stream_of(x: Operand, stream: Any) -> int:
    """The CUDA stream that a call is queued on: the one given, else the current one of x's library."""
    if stream is not None:
        # torch, cupy, numba and cuda.core have one of these; others are numbers.
        handles = [getattr(stream, a) for a in ("cuda_stream", "ptr", "handle") if hasattr(stream, a)]
        try:
            handle = int(handles[0] if handles else stream)
        except (TypeError, ValueError):
            handle = -1
        if not 0 <= handle < 1 << 64:
            raise misused("stream", repr(stream), "a cudaStream_t as a number, or a stream of torch or cupy")
        return handle
    if x.device[0] == CPU:
        return 0
    if x.kind == "torch":
        return int(sys.modules["torch"].cuda.current_stream(x.array.device).cuda_stream)
    if x.kind == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return 0


def torch_type(tensor: Any) -> tuple[int, int] | None:
    return _TORCH_CODES.get(str(tensor.dtype))
