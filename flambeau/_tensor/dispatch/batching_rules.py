"""Batching rules: how operators run on batched tensors, by kind of operator.

How an operator treats hidden dimensions follows from its kind (`batches` in its declaration); an operator without a
rule runs once for each element, with a warning.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...modes import forward_levels
from ...ops.declare import ELEMENTWISE, VIEW, Op
from ...shapes import broadcast_shapes, wrap_dim
from ..tensor import Tensor, wrap
from .apply import apply
from .batched_tensor import BatchedTensor, Level, _viewed, aligned, batched, full, functions, levels_among, lifted
from .handlers import handlers
from .inplace import write
from .promotion import promoted_type


class Batch:
    """What a batching rule is told: the hidden dimensions, and which inputs have them."""

    __slots__ = ("k", "levels", "on", "sizes")

    def __init__(self, levels: tuple[Level, ...], on: tuple[bool, ...]) -> None:
        self.levels = levels
        self.k = len(levels)  # how many
        self.sizes = tuple(level.size for level in levels)
        self.on = on  # for each input, whether it has them

    @property
    def count(self) -> int:
        """How many elements the batch has."""
        return prod(self.sizes)

    def full(self, x: Tensor) -> Tensor:
        """An input without hidden dimensions, given them."""
        return full(x, self.levels)

    def padded(self, i: int, x: Tensor, ndim: int) -> Tensor:
        """Input number `i` with at least `ndim` dimensions of its own: ones stand before those it has."""
        if not self.on[i]:
            return x
        k, shape = self.k, x._array.shape
        return _viewed(x, (*shape[:k], *((1,) * (ndim + k - len(shape))), *shape[k:]))


def apply_batched(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run an operator some of whose inputs are batched.

    Raises:
        RuntimeError: it cannot run on batches.
    """
    if op.check is not None:
        op.check(*inputs)
    levels = levels_among(inputs)
    if not levels:
        raise RuntimeError(f"vmap: {op.name} was given the outline of a batch instead of the batch; please report it.")
    if forward_levels:
        inputs = lifted(inputs, levels)
    rule = op.batching_rule
    if rule is None:
        return _one_by_one(op, inputs, params, levels)
    if isinstance(rule, str):
        found = _RULES[rule](op, inputs, params, levels)
    else:
        on = tuple(type(x) is BatchedTensor for x in inputs)
        values = [full(x, levels) if b else x for x, b in zip(inputs, on, strict=True)]
        found = rule(functions(), Batch(levels, on), *values, **params)
    if found is NotImplemented:
        return _one_by_one(op, inputs, params, levels)
    if isinstance(found, (list, tuple)):
        return [batched(x, levels) for x in found]
    return batched(found, levels)


# ----- the kinds -----

def _elementwise(op: Op, inputs: Sequence[Any], params: dict[str, Any], levels: tuple[Level, ...]) -> Any:
    ndim = max(x._array.ndim for x in inputs if isinstance(x, Tensor))
    values = [aligned(x, levels, ndim) if type(x) is BatchedTensor else x for x in inputs]
    if op.promote != "none" and len(values) > 1:
        _keep_promotion(op, inputs, values, params)
    return apply(op, values, params)


def _keep_promotion(op: Op, inputs: Sequence[Any], values: list[Any], params: dict[str, Any]) -> None:
    """Convert what is 0-d but for its hidden dimensions, where it would count for more than a 0-d tensor does."""
    zero_dim = [i for i, x in enumerate(inputs) if type(x) is BatchedTensor and not x._array.ndim
                and not (op.unpromoted and op.inputs[i] in op.unpromoted)]
    if zero_dim:
        wanted = promoted_type(op, inputs, params)
        if promoted_type(op, values, params) is not wanted:
            for i in zero_dim:
                values[i] = values[i].to(wanted)


_ONE_DIM = ("dim", "dim0", "dim1", "dim2", "dimension")


def _along_dims(op: Op, inputs: Sequence[Any], params: dict[str, Any], levels: tuple[Level, ...]) -> Any:
    """Dimensions counted from the first logical one."""
    n = next(x._array.ndim for x in inputs if isinstance(x, Tensor))
    if not n and op.name in _DIVIDING:
        return apply(op, [wrap(np.zeros((), x._array.dtype)) for x in inputs], params)  # which says what is wrong
    k = len(levels)
    values = [full(x, levels) if isinstance(x, Tensor) else x for x in inputs]
    grown = op.name in _GROWING
    scalar = n == 0 and not grown
    if scalar:
        values = [_viewed(x, (*x._array.shape, 1)) if isinstance(x, Tensor) else x for x in values]
    m = n + 1 if grown else max(n, 1)
    shifted = dict(params)
    whole = False
    for name in op.params:
        if name not in _ONE_DIM and name != "dims":
            continue
        given = params[name] if name in params else op.defaults.get(name)
        if given is None or (given == () and op.batching_rule == "reduce"):
            if op.batching_rule == "reduce":
                shifted[name] = tuple(range(k, k + m))
            elif name == "dim":
                whole = True
        elif isinstance(given, (tuple, list)):
            shifted[name] = tuple(wrap_dim(d, m) + k for d in given)
        else:
            shifted[name] = wrap_dim(given, m) + k
    if whole:
        return _flattened(op, values, shifted, k, n)
    found = apply(op, values, shifted)
    if not scalar:
        return found
    outs = found if isinstance(found, list) else [found]
    outs = [_viewed(x, x._array.shape[:k]) if x._array.ndim == k + 1 else x for x in outs]
    return outs if isinstance(found, list) else outs[0]


_DIVIDING = frozenset(name + copy for copy in ("", "_copy") for name in (
    "select", "slice", "narrow", "unbind", "split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes"))
_GROWING = frozenset(("unsqueeze", "unsqueeze_copy", "stack"))


def _flattened(op: Op, values: list[Any], params: dict[str, Any], k: int, n: int) -> Any:
    """`dim=None`: over all elements, as over one dimension of them."""
    flat = [functions().reshape(x, (*x._array.shape[:k], -1)) if isinstance(x, Tensor) else x for x in values]
    kept = params.pop("keepdim", False)
    found = apply(op, flat, {**params, "dim": k})
    outs = found if isinstance(found, list) else [found]
    if kept:
        outs = [_viewed(x, (*x._array.shape, *((1,) * n))) for x in outs]
    return outs if isinstance(found, list) else outs[0]


def _trailing(op: Op, inputs: Sequence[Any], params: dict[str, Any], levels: tuple[Level, ...]) -> Any:
    """The operator works on the last dimensions, or on all elements alike: it takes any number in front."""
    return apply(op, [full(x, levels) if isinstance(x, Tensor) else x for x in inputs], params)


def _sized(op: Op, inputs: Sequence[Any], params: dict[str, Any], levels: tuple[Level, ...]) -> Any:
    """`size` is the result's shape."""
    x = full(inputs[0], levels)
    k = len(levels)
    size = tuple(params["size"])
    n = x._array.ndim - k
    if op.name in _STRETCHING and len(size) > n:
        x = _viewed(x, (*x._array.shape[:k], *((1,) * (len(size) - n)), *x._array.shape[k:]))
        if any(s == -1 for s in size[: len(size) - n]):
            raise RuntimeError(f"expand(BatchedTensor, size={list(size)}): a new dimension cannot have the size -1.")
    return apply(op, [x, *inputs[1:]], {**params, "size": (*(level.size for level in levels), *size)})


_STRETCHING = frozenset(("expand", "expand_copy", "broadcast_to"))


def _in_rows(op: Op, inputs: Sequence[Any], params: dict[str, Any], levels: tuple[Level, ...]) -> Any:
    """The first dimension is a batch already: the hidden ones are merged with it, and split off again."""
    values = [full(x, levels) if isinstance(x, Tensor) else x for x in inputs]
    k = len(levels)
    front = tuple(level.size for level in levels)
    reshape = functions().reshape
    flat = []
    for x in values:
        if isinstance(x, Tensor):
            shape = x._array.shape
            rows = 1
            for s in shape[: k + 1]:
                rows *= s
            x = reshape(x, (rows, *shape[k + 1:]))
        flat.append(x)
    found = apply(op, flat, params)
    outs = found if isinstance(found, list) else [found]
    n = values[0]._array.shape[k]
    outs = [reshape(x, (*front, n, *x._array.shape[1:])) for x in outs]
    return outs if isinstance(found, list) else outs[0]


_RULES: dict[str, Callable[..., Any]] = {
    "elementwise": _elementwise, "dims": _along_dims, "reduce": _along_dims, "trailing": _trailing, "size": _sized,
    "rows": _in_rows,
}


# ----- one by one -----

_warned: set[str] = set()


def tell_of_loop(name: str) -> None:
    """Warn, once, that an operator runs once for each element."""
    if name not in _warned:
        _warned.add(name)
        warnings.warn("There is a performance drop because we have not yet implemented the batching rule for "
                      f"aten::{name}. Please file us an issue on GitHub so that we can prioritize its implementation.",
                      UserWarning, stacklevel=3)


def _one_by_one(op: Op, inputs: Sequence[Any], params: dict[str, Any], levels: tuple[Level, ...]) -> Any:
    """Run the operator once for each element of the batch."""
    tell_of_loop(op.name.lstrip("_"))
    return loop(lambda *values: apply(op, values, params), inputs, levels)


def loop(function: Callable[..., Any], inputs: Sequence[Any], levels: tuple[Level, ...]) -> Any:
    """`function` of the inputs' elements, one element of the batch at a time, and the results stacked."""
    sizes = tuple(level.size for level in levels)
    values = [full(x, levels) if type(x) is BatchedTensor else x for x in inputs]
    on = [type(x) is BatchedTensor for x in inputs]
    if 0 in sizes:
        raise RuntimeError("The fallback path does not support vmap over dims of size 0.")
    rows: list[Any] = []
    for place in itertools.product(*(range(s) for s in sizes)):
        rows.append(function(*[x[place] if b else x for x, b in zip(values, on, strict=True)]))
    stack = functions().stack

    def gathered(column: list[Any]) -> Any:
        value = stack(column)
        if len(sizes) > 1:
            value = functions().reshape(value, (*sizes, *value._array.shape[1:]))
        return batched(value, levels)

    if isinstance(rows[0], (list, tuple)):
        return [gathered(list(column)) for column in zip(*rows, strict=True)]
    return gathered(rows)


# ----- writing in place -----

_WIDER = ("vmap: {0}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has "
          "more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped "
          "over {1}. Please try to use out-of-place operators instead of {0}. If said operator is being called inside "
          "the PyTorch framework, please file a bug report instead.")
#: what PyTorch calls an operator that it refuses to write in place; others are `aten::` and their name
_WRITES = dict.fromkeys(
    ("sub", "mul", "div", "true_divide", "logical_and", "logical_or", "logical_xor", "clamp_min", "clamp_max", "copy",
     "masked_fill"), "inplace arithmetic") | {
         name: name + "_" for name in ("index_put", "fill", "scatter_add", "index_add", "index_fill", "scatter_reduce")}
_SIZED_WRITES = frozenset(("add", "atan2", "copysign", "bitwise_and", "bitwise_or", "bitwise_xor", "lcm", "gcd"))


def refuse_wider(target: Any, others: Sequence[Any], name: str = "inplace arithmetic") -> None:
    """Refuse a write of what has more hidden dimensions than what is written to.

    Args:
        name: what is written, in PyTorch's words.

    Raises:
        RuntimeError: it has.
    """
    mine = {level.number for level in target._levels} if type(target) is BatchedTensor else set()
    beyond = [level for level in levels_among(others) if level.number not in mine]
    if beyond:
        raise RuntimeError(_WIDER.format(name, f"at level {beyond[-1].depth}" if name.startswith("aten::") else
                                         "in a vmap"))


def _refuse_write(op: Op, target: Any, others: Sequence[Any]) -> None:
    name = op.name.strip("_")
    if name in _SIZED_WRITES and type(target) is not BatchedTensor:
        beyond = levels_among(others)
        shape = broadcast_shapes(target.shape, *(x.shape for x in others if isinstance(x, Tensor)))
        if beyond:
            raise RuntimeError(f"output with shape {list(target.shape)} doesn't match the broadcast shape "
                               f"{[*(level.size for level in beyond), *shape]}")
    said = _WRITES.get(name) or f"aten::{name}_"
    refuse_wider(target, others, f"aten::{name}_" if op.scalar_overloads and name == "masked_fill" else said)


def write_batched(op: Op, inputs: list[Any], params: dict[str, Any]) -> Tensor:
    """Run an operator and write its result over its first input, where some are batched."""
    target = inputs[0]
    _refuse_write(op, target, inputs[1:])
    levels = target._levels
    if forward_levels:
        inputs = [target, *lifted(inputs[1:], levels)]
    if op.kind == ELEMENTWISE or op.name == "copy":
        ndim = target._array.ndim
        values = [aligned(x, levels, ndim) if type(x) is BatchedTensor else x for x in inputs[1:]]
        if op.name == "copy":
            functions_method(target._value, "copy_")(*values)
        else:
            write(op, [target._value, *values], params)
        return target
    if op.kind == VIEW:
        raise RuntimeError(f"vmap: {op.name.strip('_')}_ changes the shape of a batched tensor in place; use "
                           f"{op.name.strip('_')} instead.")
    found = apply_batched(op, inputs, params)
    functions_method(target._value, "copy_")(full(found, levels))
    return target


def functions_method(x: Tensor, name: str) -> Any:
    """A method of a tensor, by name."""
    return getattr(x, name)


handlers.apply_batched, handlers.write_batched = apply_batched, write_batched

__all__ = ["Batch", "apply_batched", "loop", "refuse_wider", "tell_of_loop", "write_batched"]
