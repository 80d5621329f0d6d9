"""The arguments of reductions and scans: dimensions, `keepdim`, `dtype` and `out`, checked as PyTorch checks them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...engine.grad_mode import grad_mode
from ...engine.nodes.op_node import OpNode
from ...modes import active_tracer, dispatch_in_use, special
from ...shapes import wrap_dims
from ..argument_errors.guards import NOT_GIVEN
from ..argument_errors.type_names import type_name
from ..dispatch.gradient_edge import gradient_edge
from ..dispatch.handlers import host_elements
from ..tensor import Tensor

_INT = (int, np.integer)


def overload_error(name: str, value: Any, *signatures: str) -> TypeError:
    """The TypeError for an argument that matches no overload."""
    lines = "".join(f" * {s}\n" for s in signatures)
    return TypeError(f"{name}() received an invalid combination of arguments - got ({type_name(value)}), but "
                     f"expected one of:\n{lines}")


def as_index(value: Any) -> int | None:
    """An integer argument as int; None if it is not an integer."""
    if value.__class__ is int:
        return value
    if isinstance(value, _INT) and value.__class__ is not bool:
        return int(value)
    if isinstance(value, Tensor) and value._array.ndim == 0 and value._array.dtype.kind in "iu":
        if not isinstance(value._array, np.ndarray):
            return None
        if special[0]:
            from ..tracer_notifications import notify_read

            notify_read(value, "an integer argument")
        return int(host_elements(value))
    return None


def _element(value: Any) -> int | None:
    """An integer of a list as int, where any object with `__index__` is one; None if it is no integer."""
    index = as_index(value)
    if index is None and not isinstance(value, (bool, np.bool_, Tensor)) and hasattr(value, "__index__"):
        return int(value.__index__())
    return index


#: reductions of one signature, whose errors list none
_ONE_SIGNATURE = frozenset(("amax", "amin", "logsumexp", "nansum", "nanmean"))


#: reductions over one dimension that take several, or all, by other overloads
_OF_ONE_DIM = frozenset(("all", "any", "prod"))


def dims(name: str, dim: Any, *signatures: str) -> Any:
    """The argument `dim` of a reduction as an int, a tuple of ints or None.

    Raises:
        TypeError: it is anything else.
    """
    if dim is None or dim.__class__ is int:
        return dim
    if isinstance(dim, (tuple, list)):
        result = tuple([int(d) if d.__class__ is bool and i else _element(d) for i, d in enumerate(dim)])
        if None in result:
            if dim[0].__class__ is bool:
                raise TypeError(f"{name}(): argument 'dim' (position 1) must be tuple of ints, but found element "
                                "of type bool at pos 0")
            at = result.index(None)
            raise TypeError(f"{name}(): argument 'dim' failed to unpack the object at pos {at + 1} with error \"type "
                            f"must be tuple of ints,but got {type_name(dim[at])}\"")
        return result
    index = as_index(dim)
    if index is None and name not in _OF_ONE_DIM and isinstance(dim, Tensor) and dim._array.size == 1 and (
            dim._array.dtype.kind in "iu"):
        return int(dim)  # where a list is expected, a tensor of one element is a number whatever its shape
    if index is None:
        if name in _ONE_SIGNATURE:
            raise TypeError(f"{name}(): argument 'dim' (position 1) must be tuple of ints, not {type_name(dim)}")
        if not signatures:
            signatures = ("(*, torch.dtype dtype = None)",
                          "(tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None)")
        raise overload_error(name, dim, *signatures)
    return index


def one_dim(name: str, dim: Any, position: int = 1) -> int:
    """The argument `dim` of a scan as an int.

    Raises:
        TypeError: it is anything else.
    """
    result = as_index(dim)
    if result is None:
        raise TypeError(f"{name}(): argument 'dim' (position {position}) must be int, not {type_name(dim)}")
    return result


def take_numpy_names(name: str, names: dict[str, Any], dim: Any, keepdim: Any) -> tuple[Any, Any]:
    """`dim` and `keepdim`, which may be passed under NumPy's names `axis` and `keepdims`."""
    unknown = [key for key in names if key not in ("axis", "keepdims")]
    if unknown:
        raise TypeError(f"{name}() got an unexpected keyword argument '{unknown[0]}'")
    if "axis" in names and dim.__class__ in (int, tuple, list) and dim != ():
        raise TypeError(f"{name}() got multiple values for argument 'dim'")  # a guard says more
    return names.get("axis", dim), names.get("keepdims", keepdim)


def checked_names(name: str, names: dict[str, Any], more: tuple[Any, ...], dim: Any, keepdim: Any) -> tuple[Any, Any]:
    """`take_numpy_names`, after a check that there are no `more` arguments by position."""
    if more:
        raise TypeError(f"{name}() takes from 1 to 3 positional arguments but {3 + len(more)} were given")
    return take_numpy_names(name, names, dim, keepdim)


def more_than(more: tuple[Any, ...]) -> list[tuple[str, Any, Any]]:
    """Arguments after the last parameter, as `refused` takes them."""
    return [("", value, NOT_GIVEN) for value in more]


def checked_keepdim(name: str, keepdim: Any) -> bool:
    """`keepdim`, which must be a bool."""
    if keepdim.__class__ is not bool:
        raise TypeError(f"{name}(): argument 'keepdim' (position 2) must be bool, not {type_name(keepdim)}")
    return keepdim


def converted(input: Tensor, dtype: Any) -> tuple[Tensor, Any]:
    """(`input`, `dtype` for the kernel). Kernels convert float32 and float64; other conversions are done here."""
    if dtype is None:
        return input, None
    if dtype.numpy.kind in "biu":
        if input._array.dtype.kind == "c":
            input = input.to(dtype)  # which warns
        return input, dtype  # also the dtype of the result
    if input.dtype is dtype:
        return input, None
    have, to = input._array.dtype, dtype.numpy
    if have.kind == to.kind == "f" and have.itemsize > 2 and to.itemsize > 2:
        return input, dtype
    return input.to(dtype), None


def past_conversion(result: Any, given: Tensor, input: Tensor) -> Any:
    """The result of a reduction of `input`, a copy of `given` in another dtype, recorded as one of `given` itself.

    As in PyTorch, whose kernels convert while they read. The node casts the gradient in place of the copy's node.
    """
    if input is given or "c" in (given._array.dtype.kind, input._array.dtype.kind) or dispatch_in_use[0] or (
            special[0] and active_tracer.get() is not None):
        return result
    node = result._node
    if node.__class__ is not OpNode or node.edge0 is not input._node:
        return result
    edge = gradient_edge(given)
    if edge is None:  # only its base requires grad
        return result
    node.edge0 = edge
    node.edge_outputs = (given._output_nr,) if given._output_nr else None
    shapes, _, conjugate, widens = node.fix or (None, None, False, False)
    node.fix, node.run = (shapes, (given._array.dtype,), conjugate, widens), None
    return result


def check_not_integer(name: str, input: Tensor, dtype: Any) -> None:
    """Check an integer `dtype=` of a reduction.

    Raises:
        RuntimeError: for a mean, or for an input that requires grad (PyTorch's texts).
    """
    if name.endswith("mean"):
        raise RuntimeError(f"{name}(): could not infer output dtype. Optional dtype must be either a floating point or "
                           f"complex dtype. Got: {dtype.scalar_name}")
    if grad_mode.get() and isinstance(input, Tensor) and input._requires_grad:
        raise RuntimeError(f"Autograd not support dtype: {dtype.scalar_name}")


def check_dtype_of_out(dtype: Any, out: Any) -> None:
    """Check that `out=` has the dtype that is asked for, if both are given.

    Raises:
        RuntimeError: it has another (PyTorch's text).
    """
    if dtype is not None and out is not None and out.dtype is not dtype:
        raise RuntimeError(f"Expected out tensor to have dtype {dtypes.C_NAMES[dtype.name]}, but got "
                           f"{dtypes.C_NAMES[out.dtype.name]} instead")


def reduced_shape(shape: tuple[int, ...], dim: Any, keepdim: bool) -> tuple[int, ...]:
    """A shape without the dimensions that are reduced (all: None or none), or with size 1 for each."""
    dims = wrap_dims(dim, len(shape)) if dim is not None and dim != () else range(len(shape))
    return tuple(1 if d in dims else n for d, n in enumerate(shape) if keepdim or d not in dims)
