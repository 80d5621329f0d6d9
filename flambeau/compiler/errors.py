"""`torch._dynamo.exc`: the exceptions of compiled functions."""

from __future__ import annotations

from collections.abc import Sequence


class TorchDynamoException(RuntimeError):
    """Base class of the compiler's exceptions."""


class InvalidBackend(TorchDynamoException):
    """The backend does not exist.

    Args:
        name: the backend.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends.")


class Unsupported(TorchDynamoException):
    """A call cannot be compiled, and `fullgraph=True`."""


class FailOnRecompileLimitHit(TorchDynamoException):
    """A call has a new signature, and there are `recompile_limit` compiled ones."""


class RecompileError(TorchDynamoException):
    """A call has a new signature, and `torch._dynamo.config.error_on_recompile` is set."""


class ConstraintViolationError(RuntimeError):
    """A dimension that is marked as dynamic has to have its size.

    Args:
        places: the dimensions, such as `L['x'].size()[0]`, and their sizes.
    """

    def __init__(self, places: Sequence[tuple[str, int]]) -> None:
        lines = "".join([f"  - You marked {place} as dynamic but your code specialized it to be a constant ({size}). "
                         "If you're using mark_dynamic, either remove it or use maybe_mark_dynamic. If you're using "
                         "Dim.DYNAMIC, replace it with either Dim.STATIC or Dim.AUTO.\n" for place, size in places])
        super().__init__(f"Constraints violated ({', '.join(place for place, _ in places)})! For more information, run "
                         f'with TORCH_LOGS="+dynamic".\n{lines}')


__all__ = ["ConstraintViolationError", "FailOnRecompileLimitHit", "InvalidBackend", "RecompileError",
           "TorchDynamoException", "Unsupported"]
