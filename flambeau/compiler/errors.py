"""`torch._dynamo.exc`: the exceptions of compiled functions."""

from __future__ import annotations


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


__all__ = ["FailOnRecompileLimitHit", "InvalidBackend", "RecompileError", "TorchDynamoException", "Unsupported"]
