"""`functional_call` under its old name, and the context that replaces the tensors of a module."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import Any

from ...func import functional_call as _functional_call
from ...func.modules import reparametrized

__all__ = ["functional_call"]


@contextmanager
def _reparametrize_module(module: Any, parameters_and_buffers: dict[str, Any], tie_weights: bool = False,
                          strict: bool = False, stack_weights: bool = False) -> Any:
    """A block in which a module has the given parameters and buffers."""
    with reparametrized(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        yield


def functional_call(module: Any, parameters_and_buffers: dict[str, Any], args: Any = None,
                    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False) -> Any:
    """Deprecated: use `torch.func.functional_call`, which has the same arguments.

    >>> import flambeau as torch
    >>> import warnings
    >>> double = torch.nn.Linear(1, 1, bias=False)
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.nn.utils.stateless.functional_call(double, {"weight": torch.tensor([[2.]])}, torch.ones(1))
    tensor([2.])
    """
    warnings.warn("`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in "
                  "a future version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in "
                  "replacement.", FutureWarning, stacklevel=2)
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)
