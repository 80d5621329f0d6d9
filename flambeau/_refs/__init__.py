"""`torch._refs`: in PyTorch, operators written in Python by means of simpler ones; here the operators themselves.

Names are those of `torch`, methods of tensors as functions, and a few that exist here alone.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor, functions
from ..shapes import wrap_dims

_PACKAGE = __name__.rpartition(".")[0]
_MODULES = ("_conversions", "fft", "linalg", "nn", "special")


def T(a: Tensor) -> Tensor:
    """The transpose of a matrix.

    >>> import flambeau as torch
    >>> torch._refs.T(torch.ones(2, 3)).shape
    flambeau.Size([3, 2])
    """
    return a.T


def alias(a: Tensor) -> Tensor:
    """A view of the whole tensor.

    >>> import flambeau as torch
    >>> torch._refs.alias(torch.ones(2))
    tensor([1., 1.])
    """
    return a.view(a.shape)


def sum(a: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Tensor:
    """The sum, over all dimensions or those in `dim`.

    >>> import flambeau as torch
    >>> torch._refs.sum(torch.ones(2, 3), (0, 1))
    tensor(6.)
    """
    return functions.sum(a, dim, keepdim, dtype=dtype, out=out)


def prod(a: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Tensor:
    """The product, over all dimensions or those in `dim`, which may be several.

    >>> import flambeau as torch
    >>> torch._refs.prod(torch.full((2, 3), 2.), (0, 1))
    tensor(64.)
    """
    axes = sorted(wrap_dims(dim, a.ndim), reverse=True)
    for axis in axes[:-1]:
        a = functions.prod(a, axis, keepdim, dtype=dtype)
    return functions.prod(a, axes[-1] if axes else None, keepdim, dtype=dtype, out=out)


def copy_to(a: Tensor, b: Tensor, *, allow_cross_device: bool = True) -> Tensor:
    """Write `b` into `a`.

    >>> import flambeau as torch
    >>> torch._refs.copy_to(torch.zeros(2), torch.ones(2))
    tensor([1., 1.])
    """
    return a.copy_(b)


def rpow(a: Any, b: Any) -> Tensor:
    """`b` to the power of `a`.

    >>> import flambeau as torch
    >>> torch._refs.rpow(torch.ones(1), 2)
    tensor([2.])
    """
    return b ** a


def rtruediv(a: Any, b: Any) -> Tensor:
    """`b` divided by `a`.

    >>> import flambeau as torch
    >>> torch._refs.rtruediv(torch.ones(1), 2)
    tensor([2.])
    """
    return b / a


def rfloordiv(a: Any, b: Any) -> Tensor:
    """`b` divided by `a`, rounded down.

    >>> import flambeau as torch
    >>> torch._refs.rfloordiv(torch.tensor(2), 5)
    tensor(2)
    """
    return b // a


def trunc_divide(a: Any, b: Any) -> Tensor:
    """`a` divided by `b`, rounded toward zero.

    >>> import flambeau as torch
    >>> torch._refs.trunc_divide(torch.tensor(-5), 2)
    tensor(-2)
    """
    return a.div(b, rounding_mode="trunc")


def _out_of_place(name: str) -> Callable[..., Tensor]:
    """A function of an in-place method: the method on a copy."""
    method = getattr(Tensor, f"{name}_")

    @functools.wraps(method)
    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return getattr(input.clone(), f"{name}_")(*args, **kwargs)

    call.__name__ = name
    return call


#: names that PyTorch spells otherwise, or has as in-place methods only
_OTHERS: dict[str, Callable[[], Any]] = {
    "swap_axes": functools.partial(getattr, Tensor, "swapaxes"),
    **{name: functools.partial(_out_of_place, name) for name in (
        "cauchy", "exponential", "geometric", "log_normal", "zero")},
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if not name.startswith("_"):
        if name in _OTHERS:
            return _OTHERS[name]()
        for owner in (importlib.import_module(_PACKAGE), Tensor):
            value = getattr(owner, name, None)
            if callable(value) and not isinstance(value, type):
                return value
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
