"""Type promotion: the dtype that an operator computes in, and its operands converted to it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.compiled.thresholds import MIN_ELEMENTS
from ...backends.numpy.memory import check_scalar_fits
from ...ops.declare import ELEMENTWISE, Op
from ...shapes import broadcast_shapes
from ..tensor import Tensor
from .array_kernels import kernel_of
from .complex_half import check_complex_half

ndarray = np.ndarray
NO_PARAMS: dict[str, Any] = {}
#: the operators that compute with dtypes of eight bits
_WITH_EIGHT_BITS = frozenset(("abs", "any", "all", "eq", "isnan", "mul", "ne", "repeat", "where"))
#: operators that choose their kernel by the dtype before they look at shapes
_DTYPES_FIRST = frozenset(("unique_consecutive", "unique_dim"))
#: the largest arrays on which an operator runs a second time to find which error comes first
_FEW_ELEMENTS = 1 << 16
_SCALAR_TYPES = frozenset(dtypes.PYTHON_CATEGORY)


def result_type(operands: Sequence[Any]) -> dtypes.dtype:
    """PyTorch's promotion over tensors with dimensions, 0-d tensors and scalars, in that priority."""
    with_dims = zero_dims = scalars = None
    for x in operands:
        if x is None:
            continue
        if x.__class__ in _SCALAR_TYPES or not isinstance(x, Tensor):
            d = dtypes.of_scalar(x)
            scalars = d if scalars is None else dtypes.promote_types(scalars, d)
        else:
            d = x.dtype
            if x._array.ndim:
                with_dims = d if with_dims is None else dtypes.promote_types(with_dims, d)
            else:
                zero_dims = d if zero_dims is None else dtypes.promote_types(zero_dims, d)
    if with_dims is not None and zero_dims is None and scalars is None:
        return with_dims
    result = dtypes.combine_categories(with_dims, dtypes.combine_categories(zero_dims, scalars))
    assert result is not None
    return result


def check_dtype_supported(op: Op, d: dtypes.dtype, inputs: Sequence[Any], params: dict[str, Any]) -> None:
    """Raise the declared error if an operator does not support a dtype."""
    error = op.unsupported_dtypes.get(d.name)
    if error is None and d is dtypes.complex32:  # what computes with no complex numbers says so
        error = op.unsupported_dtypes.get("complex64")
    if error is None:
        return
    if not isinstance(error, Exception):
        error = error(*inputs, **params)
    if error is not None:
        if isinstance(error, NotImplementedError):  # which PyTorch's kernel raises, after all other checks
            if op.kind == ELEMENTWISE:
                functools.reduce(broadcast_shapes, [x._array.shape for x in inputs if isinstance(x, Tensor)])
            elif op.name not in _DTYPES_FIRST:
                _check_with_another_dtype(op, d, inputs, params)
        raise type(error)(str(error).replace("{}", d.scalar_name))


def _check_with_another_dtype(op: Op, d: dtypes.dtype, inputs: Sequence[Any], params: dict[str, Any]) -> None:
    """Raise the error of a call that is wrong with any dtype: of its shapes, dimensions and numbers.

    The operator runs on arrays of zeros, of the same shapes and of a dtype that it supports.
    """
    other = next((t for t in (dtypes.float32, dtypes.int64, dtypes.complex64) if t.name not in op.unsupported_dtypes),
                 None)
    if other is None:
        return
    arrays = [(np.zeros(x._array.shape, other.numpy) if x.dtype is d else x._array) if isinstance(x, Tensor) else x
              for x in inputs]
    if any(not isinstance(x, np.ndarray) or x.__class__ is not np.ndarray or x.size > _FEW_ELEMENTS for x in arrays):
        return
    try:
        with np.errstate(all="ignore"):
            kernel_of(op)(*arrays, **params)
    except Exception as error:  # a kernel may fail with any
        if error.__class__ is RuntimeError or (error.__class__ is IndexError and str(error)[:9] == "Dimension"):
            raise


def promoted_type(op: Op, inputs: Sequence[Any], params: dict[str, Any] = NO_PARAMS) -> dtypes.dtype:
    """The dtype that an operator's inputs promote to, before integers are converted to floating point."""
    operands = list(inputs)
    if op.unpromoted:
        operands = [x for x, name in zip(inputs, op.inputs, strict=False) if name not in op.unpromoted]
    for name in op.promoting_params:
        value = params.get(name)
        if value is not None:
            operands.append(value)
    return result_type(operands)


def promoted_operands(op: Op, inputs: Sequence[Any], params: dict[str, Any] = NO_PARAMS,
                      large: list[np.dtype] | None = None) -> tuple[list[Any], np.dtype | None]:
    """The promoted operand arrays of an operator, and the narrow dtype to round its results to (or None).

    Args:
        large: a list to append the compute dtype to for each large array, which is then left unconverted.
    """
    narrow: np.dtype | None = None
    result: list[Any] = []
    if op.check is not None:
        op.check(*inputs)
    if op.promote == "none":
        if op.unsupported_dtypes and isinstance(inputs[0], Tensor):
            check_dtype_supported(op, inputs[0].dtype, inputs, params)
        for x in inputs:
            a = x._array if isinstance(x, Tensor) else x
            if a.__class__ is ndarray and op.opmath and a.dtype in dtypes.NARROW:
                narrow = a.dtype if narrow is None else narrow
                a = dtypes.widen(a)
            elif a.__class__ is ndarray and a.dtype.kind == "V":
                if a.dtype == dtypes.COMPLEX32:
                    check_complex_half(op)
                    if op.opmath:
                        narrow = a.dtype
                        a = dtypes.widen(a)
                elif op.opmath:
                    _computes_with_eight_bits(op, a.dtype)
            result.append(a)
        return result, narrow
    common: np.dtype | None = None
    unpromoted = op.unpromoted
    for i, x in enumerate(inputs):
        if x is None or (unpromoted and op.inputs[i] in unpromoted):
            continue
        if not isinstance(x, Tensor) or (common is not None and x._array.dtype != common):
            common = None
            break
        common = x._array.dtype
    if common is not None and op.promoting_params and (
            common.kind not in "fV" or any(params.get(name).__class__ is complex for name in op.promoting_params)):
        common = None  # with floats, only a complex scalar changes the dtype
    if common is None:
        common = promoted_type(op, inputs, params).numpy
    if op.unsupported_dtypes:
        check_dtype_supported(op, dtypes.of(common), inputs, params)
    if op.promote == "float" and common.kind not in "fcV":
        common = dtypes.get_default_dtype().numpy
    compute = common
    if common.kind == "V" and common == dtypes.COMPLEX32:
        check_complex_half(op)
        if op.opmath:
            narrow, compute = common, dtypes.complex64.numpy
    elif common.kind in "fV" and op.opmath and (common in dtypes.NARROW or _computes_with_eight_bits(op, common)):
        narrow, compute = common, dtypes.float32.numpy
    for i, x in enumerate(inputs):
        if x is None:
            result.append(None)
        elif isinstance(x, Tensor):
            a = x._array
            if large is not None and a.size > MIN_ELEMENTS[0]:
                large.append(compute)
                result.append(a)
                continue
            if unpromoted and op.inputs[i] in unpromoted:
                result.append(a)
                continue
            if narrow is not None and a.dtype != narrow and (a.ndim or op.inputs[i] not in op.unrounded):
                a = dtypes.cast(a, narrow)
            result.append(a if a.dtype == compute else dtypes.cast(a, compute))
        elif narrow is not None and op.inputs[i] not in op.unrounded:
            result.append(round_scalar(x, narrow))
        else:
            result.append(scalar_operand(x, compute))
    return result, narrow


def _computes_with_eight_bits(op: Op, common: np.dtype) -> bool:
    """Whether a dtype has eight bits and the operator computes with it.

    Raises:
        NotImplementedError: it has, and the operator does not (PyTorch's text).
    """
    if common.kind != "V":
        return False
    if op.name not in _WITH_EIGHT_BITS or (op.name == "abs" and common == dtypes.float8_e8m0fnu.numpy):
        raise NotImplementedError(f"\"{op.name}_cpu\" not implemented for '{dtypes.of(common).scalar_name}'")
    return True


def round_scalar(value: Any, narrow: np.dtype) -> np.ndarray:
    """A scalar rounded to a narrow dtype, as float32, or complex64 for complex32."""
    wide = dtypes.complex64 if narrow == dtypes.COMPLEX32 else dtypes.float32
    return dtypes.widen(dtypes.cast(scalar_operand(value, wide.numpy), narrow))


#: operators whose number has float32 beside tensors of 16 bits
_WIDE_NUMBERS = frozenset(("add", "sub", "mul", "div"))


def round_params(op: Op, params: dict[str, Any], narrow: np.dtype) -> dict[str, Any]:
    """The parameters, those that take part in promotion rounded to the narrow dtype, but for numbers that PyTorch takes
    in float32."""
    if op.name in _WIDE_NUMBERS and len(op.inputs) == 1 and narrow != dtypes.COMPLEX32:
        return params
    rounded = {name: round_scalar(params[name], narrow).item() for name in op.promoting_params
               if params.get(name).__class__ is float}
    return {**params, **rounded}


def converted_params(op: Op, params: dict[str, Any], narrow: np.dtype | None, operand: Any) -> dict[str, Any]:
    """The parameters, those that take part in promotion converted to the dtype that is computed in.

    Raises:
        RuntimeError: a bound of `clamp` is out of the range of an integer dtype (PyTorch's text).
    """
    if narrow is not None:
        return round_params(op, params, narrow)
    kind = operand.dtype.kind
    if kind not in "iu":
        return params
    result = params
    for name in op.promoting_params:
        value = params.get(name)
        if value.__class__ is not int:
            continue
        limits = np.iinfo(operand.dtype)
        if not limits.min <= value <= limits.max:
            if op.name.startswith("clamp"):
                check_scalar_fits(value, dtypes.of(operand.dtype))
            result = {**result, name: int(scalar_operand(value, operand.dtype))}
    return result


def scalar_operand(value: Any, to: np.dtype) -> np.ndarray:
    if value.__class__ is int:
        dtypes.check_fits_64_bits(value)
    if to.kind in "iu" and not isinstance(value, bool):
        return np.array(int(value) & (2 ** (8 * to.itemsize) - 1), np.uint64).astype(to)
    if to.kind == "V":
        return dtypes.cast(np.asarray(value) if to == dtypes.COMPLEX32 else np.asarray(value, np.float32), to)
    return np.asarray(value).astype(to)
