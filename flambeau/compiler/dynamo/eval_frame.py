"""`torch._dynamo.eval_frame`: the class of compiled modules and whether functions can be compiled."""

from __future__ import annotations

from ..module import OptimizedModule as OptimizedModule


def is_dynamo_supported() -> bool:
    """Whether `compile` works in this Python: always.

    >>> import flambeau as torch
    >>> torch._dynamo.eval_frame.is_dynamo_supported()
    True
    """
    return True


__all__ = ["OptimizedModule", "is_dynamo_supported"]
