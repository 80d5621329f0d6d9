"""The arguments of reductions and scans: dimensions, `keepdim`, `dtype` and `out`, checked as PyTorch checks them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...engine.grad_mode import grad_mode
from ...modes import special
from ..tensor import Tensor

_INT = (int, np.integer)


def refused(name: str, value: Any, *signatures: str) -> TypeError:
    """The error for an argument that no overload takes."""
    lines = "".join(f" * {s}\n" for s in signatures)
    return TypeError(f"{name}() received an invalid combination of arguments - got ({type(value).__name__}), but "
                     f"expected one of:\n{lines}")


def as_index(value: Any) -> int | None:
    """An integer argument as int; None where it is none."""
    if value.__class__ is int:
        return value
    if isinstance(value, _INT):
        return int(value)
    if isinstance(value, Tensor) and value._array.ndim == 0 and value._array.dtype.kind in "iu":
        if value._array.__class__ is not np.ndarray:
            return None
        if special[0]:
            from ..tracer_notifications import tell_reading

            tell_reading(value, "an integer argument")
        return int(value._array)
    return None


def dims(name: str, dim: Any, *signatures: str) -> Any:
    """Dimensions to reduce as an int, a tuple of ints or None.

    Raises:
        TypeError: they are something else.
    """
    if dim is None or dim.__class__ is int:
        return dim
    if isinstance(dim, (tuple, list)):
        found = tuple(map(as_index, dim))
        if None in found:
            at = found.index(None)
            raise TypeError(f"{name}(): argument 'dim' failed to unpack the object at pos {at + 1} with error \"type "
                            f"must be tuple of ints,but got {type(dim[at]).__name__}\"")
        return found
    single = as_index(dim)
    if single is None:
        if not signatures:
            signatures = ("(*, torch.dtype dtype = None)",
                          "(tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None)")
        raise refused(name, dim, *signatures)
    return single


def one_dim(name: str, dim: Any, position: int = 1) -> int:
    """A dimension as an int.

    Raises:
        TypeError: it is something else.
    """
    found = as_index(dim)
    if found is None:
        raise TypeError(f"{name}(): argument 'dim' (position {position}) must be int, not {type(dim).__name__}")
    return found


def numpy_names_of(name: str, names: dict[str, Any], dim: Any, keepdim: Any) -> tuple[Any, Any]:
    """`dim` and `keepdim`, which may come under NumPy's names, `axis` and `keepdims`."""
    dim = names.pop("axis", dim)
    keepdim = names.pop("keepdims", keepdim)
    if names:
        raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(names))}'")
    return dim, keepdim


def checked_keepdim(name: str, keepdim: Any) -> bool:
    """`keepdim`, which must be a bool."""
    if keepdim.__class__ is not bool:
        raise TypeError(f"{name}(): argument 'keepdim' (position 2) must be bool, not {type(keepdim).__name__}")
    return keepdim


def converted(input: Tensor, dtype: Any) -> tuple[Tensor, Any]:
    """`input`, and the dtype its kernel has to convert it to: float32 and float64 convert there, others before."""
    if dtype is None:
        return input, None
    if dtype.numpy.kind in "biu":
        return input, dtype  # the result has it, too
    if input.dtype is dtype:
        return input, None
    have, to = input._array.dtype, dtype.numpy
    if have.kind == to.kind == "f" and have.itemsize > 2 and to.itemsize > 2:
        return input, dtype
    return input.to(dtype), None


def refuse_integers(name: str, input: Tensor, dtype: Any) -> None:
    """Refuse an integer `dtype=` where a mean is asked for, or where a gradient would have to flow through it.

    Raises:
        RuntimeError: it is one of these (PyTorch's texts).
    """
    if name.endswith("mean"):
        raise RuntimeError(f"{name}(): could not infer output dtype. Optional dtype must be either a floating point or "
                           f"complex dtype. Got: {dtype.scalar_name}")
    if grad_mode.get() and isinstance(input, Tensor) and input._requires_grad:
        raise RuntimeError(f"Autograd not support dtype: {dtype.scalar_name}")


def refuse_graph(name: str, *tensors: Any) -> None:
    """Refuse `out=` where a gradient would have to flow.

    Raises:
        RuntimeError: a tensor requires grad, and grad mode is on.
    """
    if grad_mode.get() and _any_wants(tensors):
        raise RuntimeError(f"{name}(): functions with out=... arguments don't support automatic differentiation, but "
                           "one of the arguments requires grad.")


def _any_wants(tensors: Any) -> bool:
    for x in tensors:
        if isinstance(x, Tensor):
            if x._requires_grad:
                return True
        elif isinstance(x, (tuple, list)) and _any_wants(x):
            return True
    return False
