"""Type promotion: the dtype an operator computes in, and its operands converted to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.compiled.thresholds import LEAST
from ...ops.declare import Op
from ..tensor import Tensor

ndarray = np.ndarray
NO_PARAMS: dict[str, Any] = {}
_NUMBERS = frozenset(dtypes.PYTHON_CATEGORY)


def result_type(operands: Sequence[Any]) -> dtypes.dtype:
    """PyTorch's promotion over tensors with dimensions, 0-d tensors and numbers, in that priority."""
    with_dims = zero_dims = wrapped = None
    for x in operands:
        if x is None:
            continue
        if x.__class__ in _NUMBERS or not isinstance(x, Tensor):
            d = dtypes.of_scalar(x)
            wrapped = d if wrapped is None else dtypes.promote_types(wrapped, d)
        else:
            d = x.dtype
            if x._array.ndim:
                with_dims = d if with_dims is None else dtypes.promote_types(with_dims, d)
            else:
                zero_dims = d if zero_dims is None else dtypes.promote_types(zero_dims, d)
    found = dtypes.combine_categories(with_dims, dtypes.combine_categories(zero_dims, wrapped))
    assert found is not None
    return found


def refuse(op: Op, d: dtypes.dtype, inputs: Sequence[Any], params: dict[str, Any]) -> None:
    """Raise what an operator has to say to numbers of a dtype it does not support."""
    error = op.unsupported_dtypes.get(d.name)
    if error is None:
        return
    if not isinstance(error, Exception):
        error = error(*inputs, **params)
    if error is not None:
        raise type(error)(str(error).replace("{}", d.scalar_name))


def promoted_type(op: Op, inputs: Sequence[Any], params: dict[str, Any] = NO_PARAMS) -> dtypes.dtype:
    """The dtype that an operator's inputs are promoted to before it is asked whether floats are needed."""
    operands = list(inputs)
    if op.unpromoted:
        operands = [x for x, name in zip(inputs, op.inputs, strict=False) if name not in op.unpromoted]
    for name in op.promoting_params:
        value = params.get(name)
        if value is not None:
            operands.append(value)
    return result_type(operands)


def _operands(op: Op, inputs: Sequence[Any], params: dict[str, Any] = NO_PARAMS,
              large: list[np.dtype] | None = None) -> tuple[list[Any], np.dtype | None]:
    """The arrays an operator computes on, promoted as it says, and the narrow dtype to round results to.

    Args:
        large: leave large arrays as they are, and put here, for each of them, the dtype to compute in.
    """
    narrow: np.dtype | None = None
    found: list[Any] = []
    if op.check is not None:
        op.check(*inputs)
    if op.promote == "none":
        if op.unsupported_dtypes and isinstance(inputs[0], Tensor):
            refuse(op, inputs[0].dtype, inputs, params)
        for x in inputs:
            a = x._array if isinstance(x, Tensor) else x
            if a.__class__ is ndarray and op.opmath and a.dtype in dtypes.NARROW:
                narrow = a.dtype if narrow is None else narrow
                a = dtypes.widen(a)
            found.append(a)
        return found, narrow
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
        common = None  # beside floats, only a complex number changes anything
    if common is None:
        common = promoted_type(op, inputs, params).numpy
    if op.unsupported_dtypes:
        refuse(op, dtypes.of(common), inputs, params)
    if op.promote == "float" and common.kind not in "fcV":
        common = dtypes.get_default_dtype().numpy
    compute = common
    if op.opmath and common in dtypes.NARROW:
        narrow, compute = common, dtypes.float32.numpy
    for i, x in enumerate(inputs):
        if x is None:
            found.append(None)
        elif isinstance(x, Tensor):
            a = x._array
            if large is not None and a.size > LEAST[0]:
                large.append(compute)
                found.append(a)
                continue
            if unpromoted and op.inputs[i] in unpromoted:
                found.append(a)
                continue
            if narrow is not None and a.dtype != narrow and (a.ndim or op.inputs[i] not in op.unrounded):
                a = dtypes.cast(a, narrow)
            found.append(a if a.dtype == compute else dtypes.cast(a, compute))
        elif narrow is not None and op.inputs[i] not in op.unrounded:
            found.append(rounded_number(x, narrow))
        else:
            found.append(_number(x, compute))
    return found, narrow


def rounded_number(value: Any, narrow: np.dtype) -> np.ndarray:
    """A number rounded to float16 or bfloat16, in float32."""
    return dtypes.widen(dtypes.cast(_number(value, dtypes.float32.numpy), narrow))


def rounded_params(op: Op, params: dict[str, Any], narrow: np.dtype) -> dict[str, Any]:
    """Parameters with those numbers rounded that stand for an input."""
    rounded = {name: float(rounded_number(params[name], narrow)) for name in op.promoting_params
               if params.get(name).__class__ is float}
    return {**params, **rounded}


def _number(value: Any, to: np.dtype) -> np.ndarray:
    if to.kind in "iu" and not isinstance(value, bool):
        if not -(2**63) <= value < 2**64:
            raise OverflowError("int too big to convert")
        return np.array(int(value) & (2 ** (8 * to.itemsize) - 1), np.uint64).astype(to)
    if to == dtypes.BFLOAT16:
        return dtypes.to_bfloat16(np.asarray(value, np.float32))
    return np.asarray(value).astype(to)
