"""Axes, casts and the making of tensors, as NumPy has them."""

from __future__ import annotations

import contextlib
import importlib
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import flambeau as torch

from . import _dtypes_impl


class AxisError(ValueError, IndexError):
    """An axis that an array does not have."""


class UFuncTypeError(TypeError, RuntimeError):
    """A function that is not defined for such dtypes."""


def is_sequence(seq: Any) -> bool:
    """Whether it has a length and is no string.

    >>> is_sequence((1, 2)), is_sequence("ab"), is_sequence(3)
    (True, False, False)
    """
    if isinstance(seq, str):
        return False
    try:
        len(seq)
    except Exception:
        return False
    return True


def cast_if_needed(tensor: Any, dtype: torch.dtype | None) -> Any:
    """A tensor in another dtype; None: as it is."""
    return tensor if dtype is None or tensor.dtype == dtype else tensor.to(dtype)


def cast_int_to_float(x: Any) -> Any:
    """Integers and booleans as the default dtype of floating point.

    >>> cast_int_to_float(torch.ones(2, dtype=torch.int64)).dtype is torch.float64
    True
    """
    return x if x.is_floating_point() or x.is_complex() else x.to(_dtypes_impl.default_dtypes().float_dtype)


def normalize_axis_index(ax: int, ndim: int, argname: str | None = None) -> int:
    """An axis counted from the front.

    Raises:
        AxisError: there is no such axis.

    >>> normalize_axis_index(-1, 3)
    2
    """
    if not -ndim <= ax < ndim:
        raise AxisError(f"axis {ax} is out of bounds for array of dimension {ndim}")
    return ax + ndim if ax < 0 else ax


def normalize_axis_tuple(axis: Any, ndim: int, argname: str | None = None,
                         allow_duplicate: bool = False) -> tuple[int, ...]:
    """An axis, or several, counted from the front.

    Args:
        axis: a number or a sequence of numbers.
        ndim: the number of dimensions.
        argname: the argument's name, for errors.
        allow_duplicate: the same axis may come twice.

    Raises:
        AxisError: there is no such axis.
        ValueError: one comes twice.

    >>> normalize_axis_tuple((0, -1), 3)
    (0, 2)
    """
    if type(axis) not in (tuple, list):
        with contextlib.suppress(TypeError):
            axis = [operator.index(axis)]
    axes = tuple(normalize_axis_index(each, ndim, argname) for each in axis)
    if not allow_duplicate and len(set(axes)) != len(axes):
        raise ValueError(f"repeated axis in `{argname}` argument" if argname else "repeated axis")
    return axes


def allow_only_single_axis(axis: Sequence[int] | None) -> int | None:
    """The one axis of a tuple.

    Raises:
        NotImplementedError: there are several.
    """
    if axis is None:
        return None
    if len(axis) != 1:
        raise NotImplementedError("does not handle tuple axis")
    return axis[0]


def expand_shape(arr_shape: Sequence[int], axis: Any) -> list[int]:
    """A shape with dimensions of size 1 at these places.

    >>> expand_shape((2, 3), (0, -1))
    [1, 2, 3, 1]
    """
    axes = axis if isinstance(axis, (list, tuple)) else (axis,)
    ndim = len(axes) + len(arr_shape)
    places = normalize_axis_tuple(axes, ndim)
    sizes = iter(arr_shape)
    return [1 if place in places else next(sizes) for place in range(ndim)]


def apply_keepdims(tensor: Any, axis: Any, ndim: int) -> Any:
    """A reduced tensor with its reduced dimensions back, of size 1."""
    if axis is None:
        return tensor.expand((1,) * ndim).contiguous()
    return tensor.reshape(expand_shape(tensor.shape, axis))


def axis_none_flatten(*tensors: Any, axis: int | None = None) -> tuple[tuple[Any, ...], int]:
    """The tensors and the axis; without an axis the tensors are flattened."""
    if axis is None:
        return tuple(each.flatten() for each in tensors), 0
    return tensors, axis


def typecast_tensor(t: Any, target_dtype: torch.dtype, casting: str) -> Any:
    """A tensor in another dtype.

    Raises:
        TypeError: NumPy's rule `casting` does not allow it.
    """
    if not _dtypes_impl.can_cast_impl(t.dtype, target_dtype, casting):
        raise TypeError(f"Cannot cast array data from {t.dtype} to {target_dtype} according to the rule '{casting}'")
    return cast_if_needed(t, target_dtype)


def typecast_tensors(tensors: Iterable[Any], target_dtype: torch.dtype, casting: str) -> tuple[Any, ...]:
    """`typecast_tensor` of several."""
    return tuple(typecast_tensor(each, target_dtype, casting) for each in tensors)


def _coerce_to_tensor(obj: Any, dtype: torch.dtype | None = None, copy: Any = False, ndmin: int = 0) -> Any:
    """What `array` makes of an object.

    Raises:
        NotImplementedError: it is no tensor and cannot become one.
    """
    if isinstance(obj, torch.Tensor):
        tensor = obj
    else:
        before = torch.get_default_dtype()
        torch.set_default_dtype(_dtypes_impl.default_dtypes().float_dtype)  # large numbers keep their digits
        try:
            tensor = torch.as_tensor(obj)
        except Exception as error:
            raise NotImplementedError(f"failed to convert {obj} to ndarray. \nInternal error is: {error!s}.") from error
        finally:
            torch.set_default_dtype(before)
    tensor = cast_if_needed(tensor, dtype)
    if ndmin > tensor.ndim:
        tensor = tensor.view((1,) * (ndmin - tensor.ndim) + tuple(tensor.shape))
    try:
        wanted = bool(copy)
    except ValueError:  # NumPy's `_CopyMode.IF_NEEDED`
        wanted = False
    return tensor.clone() if wanted else tensor


def ndarrays_to_tensors(*inputs: Any) -> Any:
    """The tensors of arrays, also in tuples; other things as they are."""
    if not inputs:
        return ValueError()
    ndarray = importlib.import_module(f"{__package__}._ndarray").ndarray
    value = inputs[0] if len(inputs) == 1 else inputs
    if isinstance(value, ndarray):
        return value.tensor
    return tuple(map(ndarrays_to_tensors, value)) if isinstance(value, tuple) else value


__all__ = ["AxisError", "UFuncTypeError", "allow_only_single_axis", "apply_keepdims", "axis_none_flatten",
           "cast_if_needed", "cast_int_to_float", "expand_shape", "is_sequence", "ndarrays_to_tensors",
           "normalize_axis_index", "normalize_axis_tuple", "typecast_tensor", "typecast_tensors"]
