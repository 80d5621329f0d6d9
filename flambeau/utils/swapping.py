"""`torch.utils.swap_tensors`: two tensors exchanged in place, and `set_module`."""

from __future__ import annotations

from typing import Any

from ..nn.swapping import swap_tensors

__all__ = ["set_module", "swap_tensors"]


def set_module(obj: Any, mod: str) -> None:
    """Set the module that an object says it is from.

    Raises:
        TypeError: the name is no string.

    >>> import flambeau as torch
    >>> def f(): ...
    >>> torch.utils.set_module(f, "examples")
    >>> f.__module__
    'examples'
    """
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod
