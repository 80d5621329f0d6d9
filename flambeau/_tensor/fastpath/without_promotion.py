"""The fast path of operators whose operands need no conversion: any number of them, integers, masks and indices, too.

`apply` looks at dtypes, promotion and rounding operand by operand. Here the operands' dtypes are looked up instead: the
first call with them goes through `promoted_operands`' rules, and only combinations that leave every array as it is are
taken. Anything else is left to `apply`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.compiled import compiled_operators
from ...backends.compiled.narrow_kernels import NARROW_KERNELS
from ...backends.compiled.thresholds import LARGE_SEEN, NARROW_CASTS, threshold_of
from ...engine.grad_mode import grad_mode, inference
from ...errstate import quietly
from ...ir.decompositions.composites import narrow_programs
from ...kernels.memory_format import in_elementwise_layout, layouts_seen, noted
from ...modes import inference_used
from ...ops.declare import COMPOSITE, ELEMENTWISE, REGISTRY, VIEW, Op
from ...shapes import broadcast_shapes
from ..dispatch.array_kernels import ROW_MAJOR, follows_inputs, kernel_of, row_major
from ..dispatch.graph_recording import as_view, as_views, record, wrap_result
from ..dispatch.promotion import round_scalar, scalar_operand
from ..tensor import INFERENCE, Tensor, wrap

ndarray = np.ndarray
asarray = np.asarray
_grad_enabled = grad_mode.get
_inferring = inference.get
widen = dtypes.widen
_NUMBER = np.zeros(())  # stands for Python numbers where shapes and strides count

#: kinds of dtypes that a number of a class leaves as they are
_KEPT_BY = {bool: "biufc", int: "iufc", float: "fc"}


class _Numbers(dict):
    """Cache of Python numbers as 0-d arrays of one dtype, or rounded to a narrow dtype and widened again."""

    def __init__(self, dtype: np.dtype, narrow: np.dtype | None) -> None:
        self.dtype, self.narrow = dtype, narrow

    def __missing__(self, number: Any) -> Any:
        made = scalar_operand(number, self.dtype) if self.narrow is None else round_scalar(number, self.narrow)
        if not number or number != number:  # 0.0 and -0.0 are equal keys, nan equals no key
            return made
        if len(self) > 1000:
            self.clear()
        self[number] = made
        made.setflags(write=False)
        return made


_NUMBERS: dict[tuple[np.dtype, np.dtype | None], _Numbers] = {}


class _Conversion:
    """What is done with operands of some dtypes before the kernel, and with its results.

    Args:
        compute: the dtype that all are computed in; None where they are not promoted.
        narrow: the dtype of 16 bits that they are widened from, and the results are rounded to, if any.
        converts_numbers: whether numbers become arrays.
        unrounded: whether these are not rounded to `narrow`.
    """

    __slots__ = ("compute", "narrow", "numbers")

    def __init__(self, compute: np.dtype | None, narrow: np.dtype | None, converts_numbers: bool,
                 unrounded: bool = False) -> None:
        self.compute, self.narrow = compute, narrow
        self.numbers = None
        if converts_numbers and compute is not None:
            rounded_to = None if unrounded else narrow
            self.numbers = _NUMBERS.setdefault((compute, rounded_to), _Numbers(compute, rounded_to))


def conversion_of(op: Op, kinds: Sequence[Any]) -> _Conversion | None:
    """What operands of these dtypes and number classes need; None: the general path.

    Args:
        kinds: a dtype for each tensor, the class of each number, None for each input that is None.
    """
    types = [kind for kind in kinds if isinstance(kind, np.dtype)]
    if any(d.kind == "V" and d != dtypes.BFLOAT16 for d in types):
        return None
    if op.promote == "none":
        narrow = [d for d in types if d in dtypes.NARROW] if op.opmath else []
        if kinds[0].__class__ is type or any(d != narrow[0] for d in narrow) or (
                kinds[0] is not None and dtypes.of(kinds[0]).name in op.unsupported_dtypes):
            return None
        return _Conversion(None, narrow[0] if narrow else None, False)
    promoted = kinds if op.variadic else [
        kind for kind, name in zip(kinds, op.inputs, strict=False) if kind is not None and name not in op.unpromoted]
    types = [kind for kind in promoted if isinstance(kind, np.dtype)]
    if not types or any(d != types[0] for d in types) or (op.variadic and len(types) < len(kinds)):
        return None
    common = compute = types[0]
    narrow_type = None
    if common in dtypes.NARROW and not op.opmath:
        if len(types) < len(kinds):
            return None
    elif common in dtypes.NARROW:
        if op.promoting_params:
            return None
        narrow_type, compute = common, dtypes.float32.numpy
    kind = compute.kind
    if (not common.isnative or (op.promote == "float" and kind not in "fcV") or (op.promoting_params and kind != "f")
            or dtypes.of(common).name in op.unsupported_dtypes):
        return None
    numbers = [name for each, name in zip(kinds, op.inputs, strict=False) if each.__class__ is type]
    if any(each.__class__ is type and kind not in _KEPT_BY[each] for each in kinds):
        return None
    unrounded = [name in op.unrounded for name in numbers]
    if any(unrounded) and not all(unrounded):
        return None
    return _Conversion(compute, narrow_type, bool(numbers), any(unrounded))


def without_promotion(op: Op) -> Callable[[Sequence[Any], dict[str, Any]], Any] | None:
    """The fast path `(inputs, {name: parameter})` of an operator whose operands need no conversion, or None.

    The fast path returns None for calls that it does not handle.
    """
    if op.kind == VIEW:
        return _view_path(op)
    if op.kind == COMPOSITE or op.tensor_list:
        return None
    kernel, limit, check, promoting = kernel_of(op), threshold_of(op.name), op.check, op.promoting_params
    elementwise, single, records = op.kind == ELEMENTWISE, op.n_outputs == 1, op.differentiable
    is_row_major, follows = op.name in ROW_MAJOR, follows_inputs(op)
    conversions: dict[tuple[Any, ...], _Conversion | None] = {}
    narrow_kernel = _either(NARROW_KERNELS.get(op.name), narrow_programs(op))

    def call(inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        values: list[Any] = []
        kinds: list[Any] = []
        requires_grad = False
        for x in inputs:
            if isinstance(x, Tensor):
                a = x._array
                if a.__class__ is not ndarray:
                    return None
                values.append(a)
                kinds.append(a.dtype)
                if x._requires_grad:
                    requires_grad = True
            else:
                values.append(x)
                kind = x.__class__
                if kind is not float and kind is not int and kind is not bool:
                    if x is not None:
                        return None
                    kind = None
                kinds.append(kind)
        key = tuple(kinds)
        try:
            conversion = conversions[key]
        except KeyError:
            conversion = conversions[key] = conversion_of(op, kinds)
        if conversion is None:
            return None
        narrow = conversion.narrow
        numbers = conversion.numbers
        if numbers is not None:
            try:
                values = [v if v is None or v.__class__ is ndarray else numbers[v] for v in values]
            except OverflowError:
                return None
        large = False
        if elementwise and LARGE_SEEN[0]:
            shape: Any = None
            for a in values:
                if a is not None:
                    if shape is None or a.shape == shape:
                        shape = a.shape
                    elif a.ndim:
                        try:
                            shape = broadcast_shapes(shape, a.shape)
                        except RuntimeError:
                            return None
            large = prod(shape) > (limit[0] if narrow is None else min(limit[0], NARROW_CASTS[0]))
            if large and (conversion.compute is None or None in kinds):
                return None
        if promoting and any(params.get(name).__class__ is complex for name in promoting):
            return None
        if check is not None:
            check(*inputs)
        operands = values
        result = None
        if narrow is not None and narrow_kernel is not None:
            try:
                result = quietly(narrow_kernel, values, params)
            except RuntimeError:  # the context is another thread's
                return None
        if result is not None:
            narrow = None  # the kernel has rounded
        elif narrow is not None and not large:
            values = [widen(v) if v.__class__ is ndarray and v.dtype == narrow else v for v in values]
        try:
            if large:
                kernels = compiled_operators(REGISTRY)
                result = None if kernels is None else quietly(
                    kernels.run, op, values, params, conversion.compute, narrow)
                if result is None and narrow is not None:
                    return None
                narrow = None  # the kernel has rounded
            if result is None:
                result = quietly(kernel, *values, **params)
        except (RuntimeError, TypeError, ValueError, IndexError):  # the context is another thread's, or it raises again
            return None
        if is_row_major:
            result = row_major(result)
        if single:
            if result.__class__ is not ndarray and not isinstance(result, ndarray):
                result = asarray(result)
            out = wrap(result) if narrow is None else wrap_result(result, narrow)
            if follows and layouts_seen[0] and result.ndim > 1 and result.__class__ is ndarray and (
                    not any(a is result for a in operands)):
                out._array = in_elementwise_layout(
                    out._array, [a if a.__class__ is ndarray else _NUMBER for a in operands if a is not None])
            outs = [out]
        else:
            outs = [wrap_result(a, narrow) for a in result]
        if requires_grad and records and _grad_enabled():
            record(op, inputs, outs, params)
        if inference_used[0] and _inferring():
            for out in outs:
                out._inference, out._counter = True, INFERENCE
        return outs[0] if single else outs

    call.__name__ = call.__qualname__ = op.name
    return call


def _either(first: Any, second: Any) -> Any:
    """The function that calls the second of two functions, of which there may be none, where the first gives None."""
    if first is None or second is None:
        return second if first is None else first

    def call(*args: Any) -> Any:
        result = first(*args)
        return second(*args) if result is None else result

    return call


#: views whose dimensions may lie in another order in memory than those of their source
PERMUTING = frozenset(("diagonal", "permute", "t", "transpose", "unfold"))


def _view_path(op: Op) -> Callable[[Sequence[Any], dict[str, Any]], Any] | None:
    """`without_promotion` of an operator whose results are views of its one input."""
    if len(op.inputs) != 1 or op.variadic or op.promote != "none" or op.opmath or op.unsupported_dtypes:
        return None
    kernel, check, records, multi = kernel_of(op), op.check, op.differentiable, op.multi_output_view
    single, permutes = op.n_outputs == 1, op.name in PERMUTING

    def call(inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        source = inputs[0]
        if not isinstance(source, Tensor):
            return None
        a = source._array
        if a.__class__ is not ndarray or a.dtype.kind == "V":
            return None
        if check is not None:
            check(source)
        try:
            result = kernel(a, **params)
        except (RuntimeError, TypeError, ValueError, IndexError, OverflowError):  # it raises again
            return None
        outs: Sequence[Tensor]
        if permutes:
            noted(result)
        if single:
            out: Tensor = wrap(result)
            outs = (as_view(out, source, multi=multi) if result is a or result.base is not None else out,)
        else:
            outs = as_views(result, source, multi=multi)
        if source._requires_grad and records and _grad_enabled() and outs and not source._inference:
            record(op, inputs, outs, params)
        if inference_used[0] and _inferring():
            for out in outs:
                if out._base is None:
                    out._inference, out._counter = True, INFERENCE
        return outs[0] if single else outs

    call.__name__ = call.__qualname__ = op.name
    return call


def without_promotion_if_any(op: Op) -> Callable[[Sequence[Any], dict[str, Any]], Any]:
    """`without_promotion`, made when it is first called; returns None where the operator has none."""

    def call(inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        path = op.without_promotion
        if path is None:
            path = op.without_promotion = without_promotion(op) or False
        return path(inputs, params) if path else None

    return call
