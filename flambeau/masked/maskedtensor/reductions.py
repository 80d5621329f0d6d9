"""Reductions of masked tensors: by the functions of `torch.masked`; a result is there if any of its elements is."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from ... import dtypes
from ..._tensor import Tensor
from ..._tensor import functions as fn
from ...warning_location import user_stacklevel
from .. import reductions as masked_reductions
from .core import FUNCTIONS, OPERATORS, REQUEST, is_masked_tensor
from .creation import as_masked_tensor, masked_tensor

methods: Any = Tensor  # its methods are installed when the package is imported
REDUCE_NAMES = [
    "sum", "mean", "amin", "amax", "argmin", "argmax", "prod", "all", "norm", "var", "std",
]


def _all(data: Tensor, dim: Any = None, keepdim: bool = False, mask: Tensor | None = None) -> Tensor:
    """`all` of the elements that are there."""
    filled = data if mask is None else data.masked_fill(~mask, True)
    result: Tensor = filled.all() if dim is None else fn.all(filled, dim, keepdim)
    return result


def _function(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = _all if name == "all" else getattr(masked_reductions, name)
    return found


def _reduce_all(name: str, x: Any) -> Any:
    """A reduction to one element."""
    data = x.get_data()
    mask = x.get_mask().values() if x.is_sparse else x.get_mask()
    function = _function(name)
    if name == "all":
        result = function(data, mask=mask)
    elif name in ("argmin", "argmax") and x.is_sparse_coo():
        result = _flat_index(data, function(data.values(), mask=mask).to(dtypes.int32))
    elif x.is_sparse:
        result = function(masked_tensor(data.values(), mask))
    else:
        result = function(x, mask=mask)
    return as_masked_tensor(result, fn.any(mask))


def _flat_index(data: Tensor, position: Tensor) -> Tensor:
    """The index in the flattened tensor of an element of a COO tensor, given by its position among the elements."""
    place = data.indices().unbind(1)[int(position)]
    stride = data.numel() / fn.tensor(data.size()).cumprod(0)
    result: Tensor = fn.sum(place * stride)
    return result


def _any(mask: Tensor, dim: Any, keepdim: bool) -> Tensor:
    for d in sorted([dim] if isinstance(dim, int) else dim, reverse=True):
        mask = fn.any(mask, d, keepdim)
    return mask


def _reduce_dim(name: str, x: Any, dim: Any, keepdim: bool = False, dtype: Any = None) -> Any:
    """A reduction along dimensions; NotImplemented for sparse ones.

    Raises:
        TypeError: the input is no masked tensor.
    """
    if x.is_sparse:
        warnings.warn(f"The sparse version of {name} is not implemented in reductions.\n{REQUEST}",
                      stacklevel=user_stacklevel())
        return NotImplemented
    if not is_masked_tensor(x):
        raise TypeError("Input to reduce_dim must be a MaskedTensor")
    mask = x.get_mask()
    if name == "all":
        result = _all(x.get_data(), dim, keepdim, mask)
    else:
        result = _function(name)(x, dim=dim, keepdim=keepdim, dtype=dtype, mask=mask)
    return as_masked_tensor(result, _any(mask, dim, keepdim))


def _dim_arguments(input: Any, dim: Any, keepdim: bool = False, dtype: Any = None) -> tuple[Any, ...]:
    return input, dim, keepdim, dtype


_dim_arguments.__name__ = _dim_arguments.__qualname__ = "_reduce_dim_args"  # the name in PyTorch's TypeErrors


def _from_function(name: str, *args: Any, **kwargs: Any) -> Any:
    """What replaces `torch.sum` and `Tensor.sum`."""
    if len(args) == 1 and not kwargs:
        return _reduce_all(name, args[0])
    return _reduce_dim(name, *_dim_arguments(*args, **kwargs))


def _apply_reduction(packet: Any, *args: Any, **kwargs: Any) -> Any:
    """What replaces the operator of `torch.ops.aten`."""
    if len(args) == 1 and not kwargs:
        return _reduce_all(packet.__name__, args[0])
    return _reduce_dim(packet.__name__, *args, **kwargs)


OPERATORS.update(dict.fromkeys(REDUCE_NAMES, _apply_reduction))
for _name in REDUCE_NAMES:
    for _place in (fn, Tensor):
        FUNCTIONS[getattr(_place, _name)] = functools.partial(_from_function, _name)
del _name, _place


def _norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None,
          out: Any = None) -> Any:
    """`norm` passes its order by name, which reductions do not take: a TypeError, as in PyTorch."""
    return _from_function("norm", input, p=p, dim=dim, keepdim=keepdim, dtype=dtype)


FUNCTIONS.update({fn.norm: _norm, methods.norm: _norm})

__all__ = ["REDUCE_NAMES"]
