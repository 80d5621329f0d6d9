"""Batching rules: how operators run on batched tensors.

The rule of an operator follows from its kind (`batches` in its declaration) or is declared with `.batching(rule)`. An
operator without a rule runs once for each example, with a warning.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...engine.grad_mode import grad_mode
from ...modes import forward_levels
from ...ops.declare import ELEMENTWISE, VIEW, Op
from ...shapes import AllDims, broadcast_shapes, wrap_dim
from ...warning_location import user_stacklevel
from ..tensor import Tensor, wrap
from .apply import apply
from .batched_tensor import (
    BatchedTensor,
    Level,
    _view,
    align_levels,
    expand_levels,
    functions,
    lift_tangents,
    make_batched,
    vmap_levels,
)
from .handlers import handlers
from .inplace import apply_inplace
from .promotion import promoted_type


class Batch:
    """The argument of a declared batching rule: the batch dimensions, and which inputs have them.

    Attributes:
        levels: the `vmap` levels, outermost first.
        k: the number of levels, which is the number of leading batch dimensions.
        sizes: the batch size of each level.
        on: for each input, whether it has the batch dimensions.
    """

    __slots__ = ("k", "levels", "on", "sizes")

    def __init__(self, levels: tuple[Level, ...], on: tuple[bool, ...]) -> None:
        self.levels = levels
        self.k = len(levels)
        self.sizes = tuple(level.size for level in levels)
        self.on = on

    @property
    def count(self) -> int:
        """The number of examples."""
        return prod(self.sizes)

    def expand_levels(self, x: Tensor) -> Tensor:
        """An input without batch dimensions, expanded to have them."""
        return expand_levels(x, self.levels)

    def padded(self, i: int, x: Tensor, ndim: int) -> Tensor:
        """Input number `i` with at least `ndim` logical dimensions, padded with ones on the left."""
        if not self.on[i]:
            return x
        k, shape = self.k, x._array.shape
        return _view(x, (*shape[:k], *((1,) * (ndim + k - len(shape))), *shape[k:]))


def apply_batched(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run an operator with batched inputs by its batching rule.

    Raises:
        RuntimeError: the operator cannot run on batched tensors.
    """
    if op.check is not None:
        op.check(*inputs)
    levels = vmap_levels(inputs)
    if not levels:
        raise RuntimeError(f"vmap: {op.name} got the metadata of a batched tensor, not the tensor; please report it.")
    if forward_levels:
        inputs = lift_tangents(inputs, levels)
    rule = op.batching_rule
    if rule is None:
        return _fallback(op, inputs, params, levels)
    if isinstance(rule, str):
        result = _RULES[rule](op, inputs, params, levels)
    else:
        on = tuple(type(x) is BatchedTensor for x in inputs)
        values = [expand_levels(x, levels) if b else x for x, b in zip(inputs, on, strict=True)]
        result = rule(functions(), Batch(levels, on), *values, **params)
    if result is NotImplemented:
        return _fallback(op, inputs, params, levels)
    if isinstance(result, (list, tuple)):
        return [make_batched(x, levels) for x in result]
    return make_batched(result, levels)


# ----- rules by kind -----

def _elementwise(op: Op, inputs: Sequence[Any], params: dict[str, Any], levels: tuple[Level, ...]) -> Any:
    ndim = max(x._array.ndim for x in inputs if isinstance(x, Tensor))
    values = [align_levels(x, levels, ndim) if type(x) is BatchedTensor else x for x in inputs]
    if op.promote != "none" and len(values) > 1:
        _preserve_promotion(op, inputs, values, params)
    return apply(op, values, params)


def _preserve_promotion(op: Op, inputs: Sequence[Any], values: list[Any], params: dict[str, Any]) -> None:
    """Convert logical scalars whose value has dimensions, which would otherwise take part in promotion as such."""
    zero_dim = [i for i, x in enumerate(inputs) if type(x) is BatchedTensor and not x._array.ndim
                and not (op.unpromoted and op.inputs[i] in op.unpromoted)]
    if zero_dim:
        result_type = promoted_type(op, inputs, params)
        if promoted_type(op, values, params) is not result_type:
            for i in zero_dim:
                values[i] = values[i].to(result_type)


_ONE_DIM = ("dim", "dim0", "dim1", "dim2", "dimension")


def _shift_dims(op: Op, inputs: Sequence[Any], params: dict[str, Any], levels: tuple[Level, ...]) -> Any:
    """Shift the dimension parameters past the batch dimensions."""
    if len(inputs) == 1:
        shifted = _shifted_by_levels(op, inputs[0], params, len(levels))
        if shifted is not None:
            return apply(op, [inputs[0]._value], shifted)
    n = next(x._array.ndim for x in inputs if isinstance(x, Tensor))
    if not n and op.name in _OUT_OF_RANGE:
        _check_dims_of_scalars(op, params)
    if not n and op.name in _SPLITTING_OPS:
        return apply(op, [wrap(np.zeros((), x._array.dtype)) for x in inputs], params)  # raises
    k = len(levels)
    values = [expand_levels(x, levels) if isinstance(x, Tensor) else x for x in inputs]
    adds_dim = op.name in _DIM_ADDING_OPS
    scalar = n == 0 and not adds_dim
    if scalar:
        values = [_view(x, (*x._array.shape, 1)) if isinstance(x, Tensor) else x for x in values]
    m = n + 1 if adds_dim else max(n, 1)
    shifted = dict(params)
    over_all = False
    for name in op.params:
        if name not in _ONE_DIM and name != "dims":
            continue
        given = params[name] if name in params else op.defaults.get(name)
        if given is None or (given == () and op.batching_rule == "reduce"):
            if op.batching_rule == "reduce":
                shifted[name] = (AllDims if given is None else tuple)(range(k, k + m))
            elif name == "dim":
                over_all = True
        elif isinstance(given, (tuple, list)):
            shifted[name] = (AllDims if given.__class__ is AllDims else tuple)(wrap_dim(d, m) + k for d in given)
        else:
            shifted[name] = wrap_dim(given, m) + k
    if over_all:
        return _apply_flattened(op, values, shifted, k, n)
    result = apply(op, values, shifted)
    if not scalar:
        return result
    outs = result if isinstance(result, list) else [result]
    outs = [_view(x, x._array.shape[:k]) if x._array.ndim == k + 1 else x for x in outs]
    return outs if isinstance(result, list) else outs[0]


def _shifted_by_levels(op: Op, x: BatchedTensor, params: dict[str, Any], k: int) -> dict[str, Any] | None:
    """`params` with a valid `dim`, or the dims of a reduction, shifted by `k`; None for any other operator or value."""
    if op.name not in _single_dims:
        names = [name for name in op.params if name in _ONE_DIM or name == "dims"]
        _single_dims[op.name] = names[0] if len(names) == 1 else None
    name = _single_dims[op.name]
    if name is None:
        return None
    adds_dim = op.name in _DIM_ADDING_OPS
    n = x._value._array.ndim - k + adds_dim
    if not n:
        return None
    dim = params.get(name)
    if dim.__class__ is int and -n <= dim < n:
        return {**params, name: dim + k if dim >= 0 else dim + n + k}
    if op.batching_rule == "reduce" and (dim is None or dim == ()) and name in params:
        return {**params, name: (AllDims if dim is None else tuple)(range(k, k + n))}
    return None


#: operator -> the only one of its parameters that is a dimension, or None
_single_dims: dict[str, str | None] = {}
_SPLITTING_OPS = frozenset(name + copy for copy in ("", "_copy") for name in (
    "select", "slice", "narrow", "unbind", "split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes"))
#: operators that take an example without dimensions to have one, but add the batch dimension to `dim`
_OUT_OF_RANGE = frozenset(("flip", "roll", "select", "split", "unbind"))


def _check_dims_of_scalars(op: Op, params: dict[str, Any]) -> None:
    """Raise for the dimensions of examples that have none: PyTorch counts the batch dimension, too."""
    given = params.get("dims", params.get("dim", op.defaults.get("dim")))
    for dim in given if isinstance(given, (tuple, list)) else (given,):
        wrap_dim(wrap_dim(dim, 1) + 1, 1)


_DIM_ADDING_OPS = frozenset(("unsqueeze", "unsqueeze_copy", "stack"))


def _apply_flattened(op: Op, values: list[Any], params: dict[str, Any], k: int, n: int) -> Any:
    """`dim=None`: flatten the logical dimensions and reduce over the one that results."""
    flat = [functions().reshape(x, (*x._array.shape[:k], -1)) if isinstance(x, Tensor) else x for x in values]
    keepdim = params.pop("keepdim", False)
    result = apply(op, flat, {**params, "dim": k})
    outs = result if isinstance(result, list) else [result]
    if keepdim:
        outs = [_view(x, (*x._array.shape, *((1,) * n))) for x in outs]
    return outs if isinstance(result, list) else outs[0]


def _trailing_dims(op: Op, inputs: Sequence[Any], params: dict[str, Any], levels: tuple[Level, ...]) -> Any:
    """The operator works on the trailing dimensions and takes any number of leading ones."""
    return apply(op, [expand_levels(x, levels) if isinstance(x, Tensor) else x for x in inputs], params)


def _prepend_sizes(op: Op, inputs: Sequence[Any], params: dict[str, Any], levels: tuple[Level, ...]) -> Any:
    """Prepend the batch sizes to `size`, the shape of the result."""
    x = expand_levels(inputs[0], levels)
    k = len(levels)
    size = tuple(params["size"])
    n = x._array.ndim - k
    if op.name in _EXPANDING_OPS and len(size) > n:
        x = _view(x, (*x._array.shape[:k], *((1,) * (len(size) - n)), *x._array.shape[k:]))
        if any(s == -1 for s in size[: len(size) - n]):
            raise RuntimeError(f"expand(BatchedTensor, size={list(size)}): a new dimension cannot have the size -1.")
    return apply(op, [x, *inputs[1:]], {**params, "size": (*(level.size for level in levels), *size)})


_EXPANDING_OPS = frozenset(("expand", "expand_copy", "broadcast_to"))


_RULES: dict[str, Callable[..., Any]] = {
    "elementwise": _elementwise, "dims": _shift_dims, "reduce": _shift_dims, "trailing": _trailing_dims,
    "size": _prepend_sizes,
}


# ----- the fallback: one example at a time -----

_warned: set[str] = set()


def warn_fallback(name: str) -> None:
    """Warn, once for each operator, that it runs once for each example."""
    if name not in _warned:
        _warned.add(name)
        warnings.warn("There is a performance drop because we have not yet implemented the batching rule for "
                      f"aten::{name}. Please file us an issue on GitHub so that we can prioritize its implementation.",
                      UserWarning, stacklevel=user_stacklevel())


def _fallback(op: Op, inputs: Sequence[Any], params: dict[str, Any], levels: tuple[Level, ...]) -> Any:
    """Run an operator once for each example, with a warning."""
    warn_fallback(op.name.lstrip("_"))
    return fallback_loop(lambda *values: apply(op, values, params), inputs, levels)


def fallback_loop(function: Callable[..., Any], inputs: Sequence[Any], levels: tuple[Level, ...]) -> Any:
    """Call `function` on each example and stack the results."""
    sizes = tuple(level.size for level in levels)
    values = [expand_levels(x, levels) if type(x) is BatchedTensor else x for x in inputs]
    on = [type(x) is BatchedTensor for x in inputs]
    if 0 in sizes:
        raise RuntimeError("The fallback path does not support vmap over dims of size 0.")
    rows: list[Any] = []
    for index in itertools.product(*(range(s) for s in sizes)):
        rows.append(function(*[x[index] if b else x for x, b in zip(values, on, strict=True)]))
    stack = functions().stack

    def stacked(column: list[Any]) -> Any:
        value = stack(column)
        if len(sizes) > 1:
            value = functions().reshape(value, (*sizes, *value._array.shape[1:]))
        return make_batched(value, levels)

    if isinstance(rows[0], (list, tuple)):
        return [stacked(list(column)) for column in zip(*rows, strict=True)]
    return stacked(rows)


# ----- writing in place -----

_WRITE_ERROR = (
    "vmap: {0}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more "
    "elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over {1}. "
    "Please try to use out-of-place operators instead of {0}. If said operator is being called inside the PyTorch "
    "framework, please file a bug report instead.")
#: PyTorch's names of in-place operators in that error; of all others, `aten::` and the name
_WRITE_NAMES = dict.fromkeys(
    ("sub", "mul", "div", "true_divide", "logical_and", "logical_or", "logical_xor", "clamp_min", "clamp_max", "copy",
     "masked_fill"), "inplace arithmetic") | {
         name: name + "_" for name in ("index_put", "fill", "scatter_add", "index_add", "index_fill", "scatter_reduce")}
_SIZED_WRITES = frozenset(("add", "atan2", "copysign", "bitwise_and", "bitwise_or", "bitwise_xor", "lcm", "gcd"))
#: in-place operators that PyTorch runs on all samples at once; the others run on one sample at a time
_WRITES_OF_ALL_SAMPLES = _SIZED_WRITES | {"bitwise_left_shift", "bitwise_right_shift", "clamp_max", "clamp_min", "div",
                                          "logical_and", "logical_or", "logical_xor", "mul", "sub", "true_divide"}


def check_vmap_write(target: Any, others: Sequence[Any], name: str = "inplace arithmetic") -> None:
    """Check that the target of an in-place operator belongs to all levels of the other inputs.

    Args:
        name: PyTorch's name of the operator.

    Raises:
        RuntimeError: it does not (PyTorch's text).
    """
    own_levels = {level.number for level in target._levels} if type(target) is BatchedTensor else set()
    extra_levels = [level for level in vmap_levels(others) if level.number not in own_levels]
    if extra_levels:
        where = f"at level {extra_levels[-1].depth}" if name.startswith("aten::") else "in a vmap"
        raise RuntimeError(_WRITE_ERROR.format(name, where))


def _check_batched_write(op: Op, target: Any, others: Sequence[Any]) -> None:
    name = op.name.strip("_")
    if name in _SIZED_WRITES and type(target) is not BatchedTensor:
        extra_levels = vmap_levels(others)
        shape = broadcast_shapes(target.shape, *(x.shape for x in others if isinstance(x, Tensor)))
        if extra_levels:
            raise RuntimeError(f"output with shape {list(target.shape)} doesn't match the broadcast shape "
                               f"{[*(level.size for level in extra_levels), *shape]}")
    aten_name = f"aten::{name}_"
    if not (op.scalar_overloads and name == "masked_fill"):
        aten_name = _WRITE_NAMES.get(name) or aten_name
    check_vmap_write(target, others, aten_name)


def _fitted(op: Op, target: BatchedTensor, others: Sequence[Any]) -> list[Any]:
    """`others` with no more dimensions than the target of a write has, once they broadcast to its sizes.

    Raises:
        RuntimeError: they do not (PyTorch's text, with the sizes of all samples or of one).
    """
    own: tuple[int, ...] = target._array.shape
    ndim = len(own)
    if op.name in _WRITES_OF_ALL_SAMPLES:
        most = max(x._array.ndim for x in (target, *others) if isinstance(x, Tensor))
        own = (*[level.size for level in target._levels], *(1,) * (most - ndim), *own)
    common = own
    for x in others:
        if isinstance(x, Tensor):
            common = broadcast_shapes(common, x._array.shape)
    if common != own:
        raise RuntimeError(f"output with shape {list(own)} doesn't match the broadcast shape {list(common)}")
    return [x[(0,) * (x._array.ndim - ndim)] if isinstance(x, Tensor) and x._array.ndim > ndim else x for x in others]


def write_batched(op: Op, inputs: list[Any], params: dict[str, Any]) -> Tensor:
    """Run an operator with batched inputs and write its result into its first input."""
    target = inputs[0]
    _check_batched_write(op, target, inputs[1:])
    levels = target._levels
    if forward_levels:
        inputs = [target, *lift_tangents(inputs[1:], levels)]
    if op.kind == ELEMENTWISE or op.name == "copy":
        ndim = target._array.ndim
        if any(isinstance(x, Tensor) and x._array.shape != target._array.shape for x in inputs[1:]):
            inputs = [target, *_fitted(op, target, inputs[1:])]
        values = [align_levels(x, levels, ndim) if type(x) is BatchedTensor else x for x in inputs[1:]]
        if op.name == "copy":
            target._value.copy_(*values)
        else:
            apply_inplace(op, [target._value, *values], params)
        return target
    if op.kind == VIEW:
        raise RuntimeError(f"vmap: {op.name.strip('_')}_ changes the shape of a batched tensor in place; use "
                           f"{op.name.strip('_')} instead.")
    if target._requires_grad and op.differentiable and grad_mode.get():
        inputs = [target.clone(), *inputs[1:]]  # what the operator saves is not what is written to
    result = apply_batched(op, inputs, params)
    target._value.copy_(expand_levels(result, levels))
    return target


handlers.apply_batched, handlers.write_batched = apply_batched, write_batched

__all__ = ["Batch", "apply_batched", "check_vmap_write", "fallback_loop", "warn_fallback", "write_batched"]
