"""Batched tensors: what a tensor is inside `vmap`, a tensor with hidden dimensions.

A batched tensor shows its own, logical shape; its value is a plain tensor with one more
dimension in front for each `vmap` level it belongs to, outermost first. Graphs and tangents
belong to the value: an operator on batched tensors is an operator on their values, with the
hidden dimensions beside, and is recorded as that. So what differentiates knows nothing of
batches, and transforms compose in any order.

How an operator treats hidden dimensions follows from its kind (`batches` in its
declaration); an operator that does not say runs once for each element, with a warning.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import Any

import numpy as np

from ...modes import leveled, special, transforming
from ...ops.declare import ELEMENTWISE, REGISTRY, VIEW, Op
from ...shapes import broadcast_shapes, wrap_dim
from ..tensor import Tensor, wrap
from . import apply as _applying
from .apply import apply, as_view, promoted_type
from .forward_mode import below, levels_of, open_levels, set_tangent, tangent_of
from .inplace import write


class Level:
    """One `vmap` that is running: its number (inner ones have higher), its size, what random operators do."""

    __slots__ = ("depth", "number", "randomness", "size")

    def __init__(self, size: int, randomness: str) -> None:
        self.number = _next_number()
        self.depth = len(transforming.get()) + 1
        self.size = size
        self.randomness = randomness


_next_number = itertools.count(1).__next__
_running: ContextVar[tuple[Level, ...]] = ContextVar("vmap_levels", default=())


def running() -> tuple[Level, ...]:
    """The `vmap` levels that this thread is in, outermost first."""
    return _running.get()


@contextmanager
def level_of(size: int, randomness: str) -> Iterator[Level]:
    """A block that is one `vmap` level."""
    level = Level(size, randomness)
    token = _running.set((*_running.get(), level))
    special[0] += 1
    leveled[0] += 1
    try:
        yield level
    finally:
        special[0] -= 1
        leveled[0] -= 1
        _running.reset(token)


@contextmanager
def only(levels: tuple[Level, ...]) -> Iterator[None]:
    """A block in which just these levels run."""
    token = _running.set(levels)
    try:
        yield
    finally:
        _running.reset(token)


ITEM = ("vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a "
        "Tensor, please try to rewrite what you're doing with other operations. If error is occurring somewhere inside "
        "PyTorch internals, please file a bug report.")
CONTROL_FLOW = ("vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't "
                "support that yet, please file an issue at https://github.com/pytorch/pytorch/issues .")


class Outline:
    """The shape and dtype of a batched tensor, where its array would be.

    What asks an array for its shape, dtype or strides is answered; what asks for elements is
    refused, so that no function can take a batch for something else.
    """

    __slots__ = ("_hidden", "_value", "dtype", "ndim", "shape")

    def __init__(self, value: np.ndarray, hidden: int) -> None:
        self._value, self._hidden = value, hidden
        self.shape = value.shape[hidden:]
        self.dtype = value.dtype
        self.ndim = value.ndim - hidden

    @property
    def strides(self) -> tuple[int, ...]:
        return self._value.strides[self._hidden:]

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def flags(self) -> Any:
        return _probe(self).flags

    base = None

    def item(self, *index: Any) -> Any:
        raise RuntimeError(ITEM)

    tolist = item

    def __bool__(self) -> bool:
        raise RuntimeError(CONTROL_FLOW)

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(_UNREADABLE.format(name))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(_UNREADABLE.format("numpy()"))

    def __array_ufunc__(self, ufunc: Any, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(_UNREADABLE.format(ufunc.__name__))

    def __array_function__(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(_UNREADABLE.format(function.__name__))

    def __getitem__(self, key: Any) -> Any:
        raise RuntimeError(_UNREADABLE.format("[...]"))

    def __setitem__(self, key: Any, value: Any) -> None:
        raise RuntimeError(_UNREADABLE.format("[...] = ..."))


_UNREADABLE = ("vmap: the elements of a batched tensor were asked for ({}), and there is no rule yet that says what "
               "this function does to a batch. Please write it with other functions, or call it outside vmap.")


def _probe(outline: Outline) -> np.ndarray:
    """An array of no memory to speak of with an outline's shape and strides, to be asked for its flags."""
    return np.lib.stride_tricks.as_strided(np.empty(1, outline.dtype), outline.shape, outline.strides)


def _of_value(name: str) -> Any:
    def get(self: Any) -> Any:
        return getattr(self._value, name)

    def put(self: Any, new: Any) -> None:
        setattr(self._value, name, new)

    return property(get, put)


class BatchedTensor(Tensor):
    """A tensor inside `vmap`. Made by `batched`; `_value` and `_levels` say what it consists of."""

    _value: Tensor  # hidden dimensions first, as many as there are levels
    _levels: tuple[Level, ...]  # outermost first
    _shown_at: tuple[int, ...] = ()  # for an input of `vmap`: where each level's dimension was before it was hidden

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return object.__new__(cls)

    @property
    def _array(self) -> Any:
        return Outline(self._value._array, len(self._levels))

    @_array.setter
    def _array(self, new: Any) -> None:
        raise RuntimeError("vmap: the memory of a batched tensor cannot be replaced inside vmap.")

    _requires_grad = _of_value("_requires_grad")
    _node = _of_value("_node")
    _output_nr = _of_value("_output_nr")
    _grad = _of_value("_grad")
    _counter = _of_value("_counter")
    _base = _of_value("_base")
    _accumulator = _of_value("_accumulator")
    _view_version = _of_value("_view_version")
    _creation = _of_value("_creation")
    _hooks = _of_value("_hooks")
    _post_accumulate_hooks = _of_value("_post_accumulate_hooks")
    _tangents = _of_value("_tangents")
    _inference = _of_value("_inference")
    _retains = _of_value("_retains")

    @property
    def grad_fn(self) -> Any:
        """The node that made the value."""
        return self._value.grad_fn

    def __bool__(self) -> bool:
        raise RuntimeError(CONTROL_FLOW)

    _depth = _of_value("_depth")

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        from ..printing import transformed_str

        return transformed_str(self, transforming.get())

    @property  # type: ignore[misc]
    def data(self) -> Any:
        """Refused: writes to it could not be followed.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("accessing `data` under vmap transform is not allowed")


def batched(value: Tensor, levels: Sequence[Level]) -> Any:
    """A tensor whose first dimensions are hidden, one for each level (outermost first); itself without levels."""
    if not levels:
        return value
    out = BatchedTensor()
    out._value, out._levels = value, tuple(levels)
    return out


def is_batched(*inputs: Any) -> bool:
    """Whether one of the inputs is a batched tensor."""
    return any(type(x) is BatchedTensor for x in inputs)


def levels_among(inputs: Sequence[Any]) -> tuple[Level, ...]:
    """All levels that the inputs belong to, outermost first."""
    found: dict[int, Level] = {}
    for x in inputs:
        if type(x) is BatchedTensor:
            for level in x._levels:
                found[level.number] = level
    return tuple(found[number] for number in sorted(found))


def functions() -> Any:
    """The operators on tensors."""
    from ...engine.node import layer

    return layer.functions


def _viewed(value: Tensor, size: tuple[int, ...]) -> Tensor:
    return value if value._array.shape == size else apply(REGISTRY["view"], [value], {"size": size})


def aligned(x: Tensor, levels: Sequence[Level], ndim: int | None = None) -> Tensor:
    """`x`'s value with a dimension for each of `levels`, of size 1 where `x` does not belong to it.

    Args:
        ndim: logical dimensions to have, filled with ones from the left; default: its own.
    """
    if type(x) is BatchedTensor:
        value, mine = x._value, x._levels
    else:
        value, mine = x, ()
    shape = value._array.shape
    sizes = dict(zip((level.number for level in mine), shape, strict=False))
    logical = shape[len(mine):]
    pad = 0 if ndim is None else max(ndim - len(logical), 0)
    return _viewed(value, (*(sizes.get(level.number, 1) for level in levels), *((1,) * pad), *logical))


def full(x: Tensor, levels: Sequence[Level]) -> Tensor:
    """`x`'s value with a dimension of full size for each of `levels`: expanded where `x` does not belong to it."""
    value = aligned(x, levels)
    size = tuple(level.size for level in levels) + value._array.shape[len(levels):]
    return value if value._array.shape == size else apply(REGISTRY["expand"], [value], {"size": size})


def expanded(x: Tensor, levels: Sequence[Level]) -> Any:
    """`x` as a member of all of `levels` too."""
    mine = x._levels if type(x) is BatchedTensor else ()
    if all(level in mine for level in levels):
        return x
    union = tuple(sorted({*mine, *levels}, key=lambda level: level.number))
    carried = _tangents_hidden_in(x, union) if open_levels else None
    if not carried:
        return batched(full(x, union), union)
    # A tangent that had hidden what its primal had not, has it no longer.
    value = x._value if type(x) is BatchedTensor else x
    whole = batched(full(batched(below(value, min(carried)), mine), union), union)
    for number in sorted(carried):
        tangent = expanded(absolute(carried[number], x), union)
        set_tangent(whole._value, relative(tangent, whole), number)
    return whole


def _tangents_hidden_in(x: Tensor, levels: Sequence[Level]) -> dict[int, Tensor] | None:
    """The tangents of `x`'s value, if one of them has hidden in `levels` what the value has not."""
    value = x._value if type(x) is BatchedTensor else x
    found = {number: t for number in levels_of([value]) if (t := tangent_of(value, number)) is not None}
    if any(level in levels for t in found.values() if type(t) is BatchedTensor for level in t._levels):
        return found
    return None


def lifted(inputs: Sequence[Any], levels: Sequence[Level]) -> list[Any]:
    """The inputs of an operator on batches, where some may only have tangents in the batch."""
    return [expanded(x, levels) if isinstance(x, Tensor) and _tangents_hidden_in(x, levels) else x for x in inputs]


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
    if open_levels:
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
    if open_levels:
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


def detached(x: BatchedTensor) -> Any:
    """The same memory without history."""
    return batched(x._value.detach(), x._levels)


def relative(g: Any, x: Any) -> Any:
    """A tangent or cotangent of `x` as one of its value: what it has hidden beyond `x`'s own levels stays hidden."""
    mine = x._levels if type(x) is BatchedTensor else ()
    union = levels_among([x, g])
    beyond = [level for level in union if level not in mine]
    return batched(_permuted(full(g, union), [union.index(level) for level in (*beyond, *mine)]), beyond)


def absolute(g: Any, x: Any) -> Any:
    """The other way: a tangent or cotangent of `x`'s value as one of `x`."""
    mine = x._levels if type(x) is BatchedTensor else ()
    value, beyond = (g._value, g._levels) if type(g) is BatchedTensor else (g, ())
    have = (*beyond, *mine)
    union = tuple(sorted(have, key=lambda level: level.number))
    return batched(_permuted(value, [have.index(level) for level in union]), union)


def _permuted(value: Tensor, order: Sequence[int]) -> Tensor:
    """The first dimensions in another order."""
    if list(order) == sorted(order):
        return value
    rest = range(len(order), value._array.ndim)
    return apply(REGISTRY["permute"], [value], {"dims": (*order, *rest)})


def peeled(x: Any, level: Level) -> tuple[Any, int | None]:
    """`x` outside `level`, the innermost, and which of its dimensions was hidden there (None: none was)."""
    if type(x) is not BatchedTensor or x._levels[-1] is not level:
        return x, None
    outside = batched(x._value, x._levels[:-1])  # the hidden dimension comes to be the first that shows
    place = x._shown_at[-1] if len(x._shown_at) == len(x._levels) else 0
    return (functions().movedim(outside, 0, place) if place else outside), place


_applying.batched_class, _applying.apply_batched = BatchedTensor, apply_batched

__all__ = ["Batch", "BatchedTensor", "Level", "absolute", "aligned", "apply_batched", "as_view", "batched",
           "detached", "expanded", "full", "is_batched", "level_of", "levels_among", "loop", "only", "peeled",
           "relative", "running", "wrap", "write_batched"]
