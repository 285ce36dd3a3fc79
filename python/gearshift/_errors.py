"""Errors as data: what was concerned, what was found, what was wanted, what to do."""

from __future__ import annotations

from . import _native


class Error(Exception):
    """What went wrong. `str()` is one line: "subject: found ..., wanted ... (hint)"; fields that have nothing to say are ""."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "runtime",
        subject: str = "",
        found: str = "",
        wanted: str = "",
        hint: str = "",
        details: list[str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.subject = subject
        self.found = found
        self.wanted = wanted
        self.hint = hint
        self.details = list(details or [])

    def __reduce__(self) -> tuple[object, ...]:
        return _make_error, (self.code, str(self), self.subject, self.found, self.wanted, self.hint, self.details)


class UsageError(Error, ValueError):
    """An option, name or argument is wrong."""


class NoKernelError(Error):
    """No registered kernel can serve a layer; `details` has every candidate's reason."""


class FallbackRefusedError(Error):
    """strict, and a requested backend does not serve a layer; `details` lists them."""


class DamagedCheckpointError(Error):
    """A file is damaged or contradicts itself."""


class UnsupportedSchemeError(Error):
    """A scheme that is recognised and not loaded."""


class SelfCheckError(Error):
    """A kernel gave wrong numbers and no healthy one is left."""


_BY_CODE: dict[str, type[Error]] = {
    "usage": UsageError,
    "no_kernel": NoKernelError,
    "fallback_refused": FallbackRefusedError,
    "damaged_checkpoint": DamagedCheckpointError,
    "unsupported_scheme": UnsupportedSchemeError,
    "self_check": SelfCheckError,
}


def _make_error(
    code: str, message: str, subject: str, found: str, wanted: str, hint: str, details: list[str]
) -> Error:
    return _BY_CODE.get(code, Error)(
        message, code=code, subject=subject, found=found, wanted=wanted, hint=hint, details=details
    )


def misused(subject: str, found: str, wanted: str, hint: str = "") -> Error:
    message = f"{subject}: found {found}, wanted {wanted}" + (f" ({hint})" if hint else "")
    return _make_error("usage", message, subject, found, wanted, hint, [])


_native.set_error_maker(_make_error)
