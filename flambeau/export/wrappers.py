"""Marks on what an exported program calls; `torch._export.wrappers`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["mark_subclass_constructor_exportable_experimental"]


def mark_subclass_constructor_exportable_experimental(constructor_subclass: Callable[..., Any]) -> Callable[..., None]:
    """Mark the `__init__` of a subclass of tensors for export, whose trace has the operators that it calls.

    Raises:
        RuntimeError: another function is marked (PyTorch's text).

    >>> import flambeau as torch
    >>> class Named(torch.Tensor):
    ...     @torch._export.wrappers.mark_subclass_constructor_exportable_experimental
    ...     def __init__(self, data):
    ...         self.title = "a"
    >>> Named(torch.ones(1)).title
    'a'
    """
    if constructor_subclass.__name__ != "__init__":
        raise RuntimeError("torch._export.wrappers.mark_constructor_exportable_experimental can only be applied on "
                           f"subclass tensor.__init__But, you are adding it on {constructor_subclass.__name__} which "
                           "is not supported. If __init__ doesn't exist on your subclass, please add it. Look at "
                           "DTensor.__init__ implementation for example")

    @functools.wraps(constructor_subclass)
    def wrapper(*args: Any, **kwargs: Any) -> None:
        constructor_subclass(*args, **kwargs)

    return wrapper
