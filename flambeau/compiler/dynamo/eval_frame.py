"""`torch._dynamo.eval_frame`: the class of compiled modules and whether functions can be compiled."""

from __future__ import annotations

from typing import Any

from ..api import disable
from ..module import OptimizedModule as OptimizedModule


def is_dynamo_supported() -> bool:
    """Whether `compile` works in this Python: always.

    >>> import flambeau as torch
    >>> torch._dynamo.eval_frame.is_dynamo_supported()
    True
    """
    return True


@disable
def unsupported(x: Any, y: Any) -> Any:
    """The second argument, by a function that no graph contains.

    >>> unsupported(1, 2)
    2
    """
    return y


__all__ = ["OptimizedModule", "is_dynamo_supported", "unsupported"]
