"""Data types of the array API: kinds, promotion by dtypes alone, casts."""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple

from ... import dtypes
from ..._tensor import Tensor, functions
from ...dtypes import dtype as _dtype

_KINDS: dict[str, tuple[_dtype, ...]] = {
    "bool": (dtypes.bool_,),
    "signed integer": (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
    "unsigned integer": (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
    "real floating": (dtypes.float32, dtypes.float64),
    "complex floating": (dtypes.complex64, dtypes.complex128),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]

_SCALARS = (builtins.bool, int, float, complex)


def _dtype_of(x: Any) -> _dtype:
    return x.dtype if isinstance(x, Tensor) else x


def _scalar_dtype(value: Any, beside: _dtype) -> _dtype:
    """The dtype that a Python scalar takes beside arrays of `beside`."""
    kind = type(value)
    if kind is builtins.bool or (kind is int and beside is not dtypes.bool_):
        return beside
    if kind is float and (beside.is_floating_point or beside.is_complex):
        return beside
    if kind is complex and beside.is_complex:
        return beside
    if kind is complex and beside.is_floating_point:
        return dtypes.complex64 if beside is not dtypes.float64 else dtypes.complex128
    raise TypeError(f"a Python {kind.__name__} does not promote with an array of dtype {beside}")


def result_type(*arrays_and_dtypes: Any) -> _dtype:
    """The dtype that arrays, dtypes and Python scalars promote to; shapes play no part.

    Args:
        arrays_and_dtypes: tensors of any shape, dtypes, and at most as many Python scalars that adapt to them.

    Raises:
        TypeError: scalars without an array or dtype, or a scalar of a higher kind than the arrays.

    Source: the array API standard, "Type Promotion Rules".

    >>> import flambeau as torch
    >>> from flambeau.interop import array_api as xp
    >>> xp.result_type(torch.tensor(1, dtype=torch.int64), torch.ones(2, dtype=torch.int8))
    flambeau.int64
    """
    found: _dtype | None = None
    scalars = []
    for each in arrays_and_dtypes:
        if isinstance(each, _SCALARS):
            scalars.append(each)
            continue
        kind = _dtype_of(each)
        found = kind if found is None else dtypes.promote_types(found, kind)
    if found is None:
        raise TypeError("result_type needs at least one array or dtype")
    for scalar in scalars:
        found = _scalar_dtype(scalar, found)
    return found


def promoted(*arguments: Any) -> list[Tensor]:
    """Tensors of the common dtype, made of tensors and Python scalars."""
    first = arguments[0]
    if isinstance(first, Tensor) and builtins.all(
            isinstance(each, Tensor) and each.dtype is first.dtype for each in arguments):
        return list(arguments)
    common = result_type(*arguments)
    return [each.to(common) if isinstance(each, Tensor) else functions.tensor(each, dtype=common)
            for each in arguments]


def isdtype(dtype: _dtype, kind: Any) -> builtins.bool:
    """Whether a dtype is of a kind: "bool", "signed integer", "real floating", "numeric", a dtype, or a tuple of those.

    Raises:
        ValueError: the kind is unknown.

    >>> from flambeau.interop import array_api as xp
    >>> xp.isdtype(xp.float32, ("real floating", "complex floating"))
    True
    """
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"Unrecognized data type kind: {kind!r}")
        return dtype in _KINDS[kind]
    return dtype == kind


def can_cast(from_: Any, to: _dtype, /) -> builtins.bool:
    """Whether promotion can turn one dtype (or an array's) into another one.

    >>> from flambeau.interop import array_api as xp
    >>> xp.can_cast(xp.int8, xp.int16), xp.can_cast(xp.float64, xp.float32)
    (True, False)
    """
    kind = _dtype_of(from_)
    try:
        return dtypes.promote_types(kind, to) is to
    except RuntimeError:  # unsigned integers wider than eight bits do not promote
        return False


def astype(x: Tensor, dtype: _dtype, /, *, copy: builtins.bool = True, device: Any = None) -> Tensor:
    """The array in another dtype; a copy unless `copy` is False and nothing changes.

    Raises:
        TypeError: the array is complex and the dtype is not.

    >>> from flambeau.interop import array_api as xp
    >>> xp.astype(xp.asarray([1.5, 2.5]), xp.int64)
    tensor([1, 2])
    """
    if x.dtype.is_complex and not (dtype.is_complex or dtype is dtypes.bool_):
        raise TypeError(f"astype of a complex array to {dtype} would discard the imaginary part")
    return x.to(dtype=dtype, device=device, copy=copy)


class finfo(NamedTuple):
    """Limits of a floating-point dtype, or of an array's; of the components for complex dtypes.

    >>> from flambeau.interop import array_api as xp
    >>> xp.finfo(xp.float32).bits
    32
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: _dtype


class iinfo(NamedTuple):
    """Limits of an integer dtype, or of an array's.

    >>> from flambeau.interop import array_api as xp
    >>> xp.iinfo(xp.int16).max
    32767
    """

    bits: int
    max: int
    min: int
    dtype: _dtype


def _finfo(cls: type[finfo], type: Any, /) -> finfo:
    kind = _dtype_of(type)
    if not (kind.is_floating_point or kind.is_complex):
        raise TypeError(f"finfo needs a floating-point dtype, not {kind}")
    limits = dtypes.finfo(kind)
    real = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}.get(kind, kind)
    return tuple.__new__(cls, (limits.bits, limits.eps, limits.max, limits.min, limits.smallest_normal, real))


def _iinfo(cls: type[iinfo], type: Any, /) -> iinfo:
    kind = _dtype_of(type)
    if kind not in _KINDS["integral"]:
        raise TypeError(f"iinfo needs an integer dtype, not {kind}")
    limits = dtypes.iinfo(kind)
    return tuple.__new__(cls, (limits.bits, limits.max, limits.min, kind))


# The classes are called with a dtype or an array, as the standard's functions are.
finfo.__new__ = _finfo  # type: ignore[method-assign, assignment]
iinfo.__new__ = _iinfo  # type: ignore[method-assign, assignment]
