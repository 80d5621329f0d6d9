"""`torch._export.error`: errors of programs that transform exported graphs."""

from __future__ import annotations

from enum import Enum


class ExportErrorType(Enum):
    """Why something could not be exported."""

    INVALID_INPUT_TYPE = 1
    INVALID_OUTPUT_TYPE = 2
    VIOLATION_OF_SPEC = 3
    NOT_SUPPORTED = 4
    MISSING_PROPERTY = 5
    UNINITIALIZED = 6


def internal_assert(pred: bool, assert_msg: str) -> None:
    """Raise an `InternalError` with a message unless a condition holds.

    >>> from flambeau.export.error import internal_assert
    >>> internal_assert(True, "unreachable")
    """
    if not pred:
        raise InternalError(assert_msg)


class InternalError(Exception):
    """An error of the exporter itself."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class ExportError(Exception):
    """An error of what is exported.

    Args:
        error_code: why.
        message: the text.

    >>> from flambeau.export.error import ExportError, ExportErrorType
    >>> ExportError(ExportErrorType.NOT_SUPPORTED, "no loops")
    ExportError('[ExportErrorType.NOT_SUPPORTED]: no loops')
    """

    def __init__(self, error_code: ExportErrorType, message: str) -> None:
        super().__init__(f"[{error_code}]: {message}")


__all__ = ["ExportError", "ExportErrorType", "InternalError", "internal_assert"]
