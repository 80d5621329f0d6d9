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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import Any

import numpy as np

from ...engine.tensor_interface import layer
from ...modes import leveled, special, transforming
from ...ops.declare import REGISTRY
from ..printing import transformed_str
from ..tensor import Tensor
from .apply import apply
from .forward_mode import below, levels_of, open_levels, set_tangent, tangent_of
from .handlers import handlers


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


handlers.batched_class = BatchedTensor

__all__ = ["BatchedTensor", "Level", "absolute", "aligned", "batched", "detached", "expanded", "full", "is_batched",
           "level_of", "levels_among", "lifted", "only", "peeled", "relative", "running"]
