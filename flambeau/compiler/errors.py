"""`torch._dynamo.exc`: the exceptions of compiled functions."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any


class TorchDynamoException(RuntimeError):
    """Base class of the compiler's exceptions."""


class InvalidBackend(TorchDynamoException):
    """The backend does not exist.

    Args:
        name: the backend.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends.")


class BackendCompilerFailed(TorchDynamoException):
    """A backend raised an error.

    Args:
        backend_fn: the backend.
        inner_exception: the error.

    >>> print(BackendCompilerFailed(print, ValueError("no")))
    backend='print' raised:
    ValueError: no
    """

    def __init__(self, backend_fn: Any, inner_exception: Exception, first_useful_frame: Any = None) -> None:
        self.backend_name = getattr(backend_fn, "__name__", "?")
        self.inner_exception = inner_exception
        super().__init__(f"backend={self.backend_name!r} raised:\n{type(inner_exception).__name__}: {inner_exception}")


class Unsupported(TorchDynamoException):
    """A call cannot be compiled, and `fullgraph=True`."""


class InternalTorchDynamoError(TorchDynamoException):
    """The compiler failed."""


class TorchRuntimeError(TorchDynamoException):
    """An operator failed while a call was traced."""

    def __init__(self, msg: str, real_stack: Any = None) -> None:
        super().__init__(msg)
        self.msg, self.real_stack = msg, real_stack


class SkipFrame(TorchDynamoException):
    """A backend asks that a function is not compiled."""


class RestartAnalysis(TorchDynamoException):
    """A trace is to begin again, which PyTorch's tracer asks for; nothing raises it here."""

    def __init__(self, *args: Any, restart_reason: str | None = None) -> None:
        super().__init__(*args)
        self.restart_reason = restart_reason


class TensorifyScalarRestartAnalysis(RestartAnalysis):
    """A trace is to begin again with numbers as tensors; nothing raises it here."""


class ResetRequired(TorchDynamoException):
    """Two calls of `compile` have different backends, and `reset` was not called in between."""

    def __init__(self) -> None:
        super().__init__("\nMust call `torch._dynamo.reset()` before changing backends.  Detected two calls to\n"
                         "`torch.compile()` with a different backend compiler arguments.\n")


class UncapturedHigherOrderOpError(TorchDynamoException):
    """The function of a higher-order operator cannot be traced."""


class CondOpArgsMismatchError(TorchDynamoException):
    """Branches of `cond` return other arguments."""


class UserErrorType(enum.Enum):
    """What a `UserError` is about."""

    DYNAMIC_CONTROL_FLOW = enum.auto()
    ANTI_PATTERN = enum.auto()
    STANDARD_LIBRARY = enum.auto()
    CONSTRAINT_VIOLATION = enum.auto()
    DYNAMIC_DIM = enum.auto()
    INVALID_INPUT = enum.auto()
    INVALID_OUTPUT = enum.auto()
    UNSUPPORTED_ALIASED_MUTATED_DYNAMIC_INPUTS = enum.auto()


class UserError(TorchDynamoException):
    """A program that is valid when it runs eagerly, but cannot be compiled or exported as it is written.

    Args:
        error_type: what is wrong.
        msg: what the user is to do.
        case_name: the name of an example in PyTorch's exportdb.

    >>> print(UserError(UserErrorType.ANTI_PATTERN, "Do not.", "a_case"))
    Do not. For more information about this error, see: \
https://pytorch.org/docs/main/generated/exportdb/index.html#a-case
    """

    def __init__(self, error_type: UserErrorType, msg: str, case_name: str | None = None) -> None:
        if case_name is not None:
            msg += (" " if msg.endswith(".") else "\n") + (
                "For more information about this error, see: https://pytorch.org/docs/main/generated/exportdb/"
                f"index.html#{case_name.replace('_', '-')}")
        super().__init__(msg)
        self.error_type, self.msg, self.message = error_type, msg, msg


class FailOnRecompileLimitHit(TorchDynamoException):
    """A call has a new signature, and there are `recompile_limit` compiled ones."""


class RecompileError(TorchDynamoException):
    """A call has a new signature, and `torch._dynamo.config.error_on_recompile` is set."""


class ConstraintViolationError(RuntimeError):
    """A dimension that is marked as dynamic has to have its size.

    Args:
        places: the dimensions, such as `L['x'].size()[0]`, and their sizes; or the text.
    """

    def __init__(self, places: Sequence[tuple[str, int]] | str) -> None:
        if isinstance(places, str):
            super().__init__(places)
            return
        lines = "".join([f"  - You marked {place} as dynamic but your code specialized it to be a constant ({size}). "
                         "If you're using mark_dynamic, either remove it or use maybe_mark_dynamic. If you're using "
                         "Dim.DYNAMIC, replace it with either Dim.STATIC or Dim.AUTO.\n" for place, size in places])
        super().__init__(f"Constraints violated ({', '.join(place for place, _ in places)})! For more information, run "
                         f'with TORCH_LOGS="+dynamic".\n{lines}')


__all__ = ["BackendCompilerFailed", "CondOpArgsMismatchError", "ConstraintViolationError", "FailOnRecompileLimitHit",
           "InternalTorchDynamoError", "InvalidBackend", "RecompileError", "ResetRequired", "RestartAnalysis",
           "SkipFrame", "TensorifyScalarRestartAnalysis", "TorchDynamoException", "TorchRuntimeError",
           "UncapturedHigherOrderOpError", "Unsupported", "UserError", "UserErrorType"]
