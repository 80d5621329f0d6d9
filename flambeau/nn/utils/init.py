"""`skip_init`: modules with uninitialized parameters."""

from __future__ import annotations

import inspect
from typing import Any

from ..modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type, *args: Any, **kwargs: Any) -> Any:
    """Instantiate a module without running its initialization: its parameters hold arbitrary values.

    Args:
        module_cls: the class, whose constructor takes `device`.
        args: positional arguments of the constructor.
        kwargs: keyword arguments; `device` is that of the result.

    Raises:
        RuntimeError: it is not a module class, or its constructor takes no `device`.

    >>> import flambeau as torch
    >>> torch.nn.utils.skip_init(torch.nn.Linear, 5, 1)
    Linear(in_features=5, out_features=1, bias=True)
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)
