"""The errors of compiled functions, which PyTorch keeps in `torch._dynamo.exc`."""

from __future__ import annotations


class TorchDynamoException(RuntimeError):
    """What compiling a function may raise."""


class InvalidBackend(TorchDynamoException):
    """A backend of a name that nobody knows."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends.")


class Unsupported(TorchDynamoException):
    """A call that cannot be one program, where `fullgraph=True` says that it must be."""


class FailOnRecompileLimitHit(TorchDynamoException):
    """A call of one more kind than there may be programs for, where that is an error."""


class RecompileError(TorchDynamoException):
    """A call of another kind than those before, where `error_on_recompile` says that it is an error."""


__all__ = ["FailOnRecompileLimitHit", "InvalidBackend", "RecompileError", "TorchDynamoException", "Unsupported"]
