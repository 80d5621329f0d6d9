"""Batched tensors: tensors with batch dimensions that are hidden from the function inside `vmap`.

A batched tensor has the logical shape. Its value is a plain tensor with one more leading dimension for each `vmap`
level that it belongs to, outermost first. Graph and tangents belong to the value: an operator on batched tensors is an
operator on their values and is recorded as such. So autograd and forward mode need no batching rules of their own, and
transforms compose in any order. `batching_rules` has the rules.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import Any

import numpy as np

from ...backends.numpy.memory import view_memory
from ...backends.numpy.views import is_row_major
from ...engine.tensor_interface import layer
from ...modes import level_count, special, transform_stack
from ...ops.declare import REGISTRY
from ..fastpath.levels import beside_levels
from ..fastpath.views import view_function
from ..overriding.protocol import DISABLED
from ..printing import nested_transform_str
from ..tensor import Tensor, wrap
from .apply import apply
from .array_kernels import kernel_of
from .forward_mode import open_levels, set_tangent, strip_levels, tangent_levels, tangent_of
from .handlers import handlers


class Level:
    """A running `vmap`: its number (inner levels have higher ones), its batch size and its randomness mode."""

    __slots__ = ("depth", "number", "randomness", "size")

    def __init__(self, size: int, randomness: str) -> None:
        self.number = _next_number()
        self.depth = len(transform_stack.get()) + 1
        self.size = size
        self.randomness = randomness


_next_number = itertools.count(1).__next__
_active_levels: ContextVar[tuple[Level, ...]] = ContextVar("vmap_levels", default=())


def active_levels() -> tuple[Level, ...]:
    """The `vmap` levels of this thread, outermost first."""
    return _active_levels.get()


class vmap_level:
    """A block inside a new `vmap` level."""

    __slots__ = ("_level", "_token")

    def __init__(self, size: int, randomness: str) -> None:
        self._level = Level(size, randomness)

    def __enter__(self) -> Level:
        self._token = _active_levels.set((*_active_levels.get(), self._level))
        special[0] += 1
        level_count[0] += 1
        return self._level

    def __exit__(self, *exception: object) -> None:
        special[0] -= 1
        level_count[0] -= 1
        _active_levels.reset(self._token)


@contextmanager
def set_levels(levels: tuple[Level, ...]) -> Iterator[None]:
    """Make exactly these levels active."""
    token = _active_levels.set(levels)
    try:
        yield
    finally:
        _active_levels.reset(token)


ITEM_ERROR = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, "
    "please try to rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch "
    "internals, please file a bug report.")
CONTROL_FLOW_ERROR = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that "
    "yet, please file an issue at https://github.com/pytorch/pytorch/issues .")


class ArrayMetadata:
    """The `_array` of a batched tensor: shape, dtype and strides of one example, without access to elements.

    Any access to elements raises, so that code without a batching rule cannot compute wrong results silently.
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
        return _Flags(self)

    base = torch_device = None

    def item(self, *index: Any) -> Any:
        raise RuntimeError(ITEM_ERROR)

    tolist = item

    def __bool__(self) -> bool:
        raise RuntimeError(CONTROL_FLOW_ERROR)

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(_ELEMENTS_ERROR.format(name))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(_ELEMENTS_ERROR.format("numpy()"))

    def __array_ufunc__(self, ufunc: Any, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(_ELEMENTS_ERROR.format(ufunc.__name__))

    def __array_function__(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(_ELEMENTS_ERROR.format(function.__name__))

    def __getitem__(self, key: Any) -> Any:
        raise RuntimeError(_ELEMENTS_ERROR.format("[...]"))

    def __setitem__(self, key: Any, value: Any) -> None:
        raise RuntimeError(_ELEMENTS_ERROR.format("[...] = ..."))


_ELEMENTS_ERROR = ("vmap: the elements of a batched tensor were accessed ({}) by a function that has no batching rule. "
                   "Please write it with other functions, or call it outside vmap.")


class _Flags:
    """The flags of one example of a batch."""

    __slots__ = ("_metadata",)

    def __init__(self, metadata: ArrayMetadata) -> None:
        self._metadata = metadata

    @property
    def c_contiguous(self) -> bool:
        if self._metadata._value.flags.c_contiguous:
            return True
        return bool(self._probe().flags.c_contiguous)

    def _probe(self) -> np.ndarray:
        """A one-element array strided to the example's shape."""
        m = self._metadata
        return np.lib.stride_tricks.as_strided(np.empty(1, m.dtype), m.shape, m.strides)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._probe().flags, name)


def _value_attribute(name: str) -> Any:
    """A property that reads and writes the attribute of the value."""
    def get(self: Any) -> Any:
        return getattr(self._value, name)

    def put(self: Any, new: Any) -> None:
        setattr(self._value, name, new)

    return property(get, put)


class BatchedTensor(Tensor):
    """A tensor inside `vmap`: a value and the levels of its leading dimensions. Made by `make_batched`."""

    __slots__ = ("_levels", "_metadata", "_value")
    _metadata: ArrayMetadata  # of the value's array, made when it is first asked for
    _value: Tensor  # batch dimensions first, one for each level
    _levels: tuple[Level, ...]  # outermost first
    __torch_function__ = DISABLED
    _in_dims: tuple[int, ...] = ()  # of an input of `vmap`: the batch dimension of each level in the argument

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return object.__new__(cls)

    @property
    def _device(self) -> Any:
        return self._value._device

    @property
    def _array(self) -> Any:
        array = self._value._array
        try:
            metadata = self._metadata
            if metadata._value is array:
                return metadata
        except AttributeError:
            pass
        metadata = self._metadata = ArrayMetadata(array, len(self._levels))
        return metadata

    @_array.setter
    def _array(self, new: Any) -> None:
        raise RuntimeError("vmap: the memory of a batched tensor cannot be replaced inside vmap.")

    _requires_grad = _value_attribute("_requires_grad")
    _node = _value_attribute("_node")
    _output_nr = _value_attribute("_output_nr")
    _grad = _value_attribute("_grad")
    _counter = _value_attribute("_counter")
    _base = _value_attribute("_base")
    _accumulator = _value_attribute("_accumulator")
    _view_version = _value_attribute("_view_version")
    _creation = _value_attribute("_creation")
    _hooks = _value_attribute("_hooks")
    _post_accumulate_hooks = _value_attribute("_post_accumulate_hooks")
    _tangents = _value_attribute("_tangents")
    _inference = _value_attribute("_inference")
    _retains_grad = _value_attribute("_retains_grad")

    @property
    def grad_fn(self) -> Any:
        """The graph node that computed the value."""
        return self._value.grad_fn

    def __bool__(self) -> bool:
        raise RuntimeError(CONTROL_FLOW_ERROR)

    _transform_depth = _value_attribute("_transform_depth")

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return nested_transform_str(self, transform_stack.get())

    @property  # type: ignore[misc]
    def data(self) -> Any:
        """Not available: writes to it could not be tracked.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("accessing `data` under vmap transform is not allowed")


def make_batched(value: Tensor, levels: Sequence[Level]) -> Any:
    """A batched tensor whose value has one leading dimension for each level; `value` itself without levels."""
    if not levels:
        return value
    out: Any = object.__new__(BatchedTensor)
    out._value, out._levels = value, levels if levels.__class__ is tuple else tuple(levels)
    return out


def is_batched(*inputs: Any) -> bool:
    """Whether one of the inputs is a batched tensor."""
    return any(type(x) is BatchedTensor for x in inputs)


def vmap_levels(inputs: Sequence[Any]) -> tuple[Level, ...]:
    """The union of the inputs' levels, outermost first."""
    found: Any = ()
    for x in inputs:
        if x.__class__ is BatchedTensor:
            levels = x._levels
            if not found:
                found = levels
            elif levels is not found and levels != found:
                union = {level.number: level for y in inputs if y.__class__ is BatchedTensor for level in y._levels}
                return tuple([union[number] for number in sorted(union)])
    return found


def functions() -> Any:
    """The namespace of operators on tensors."""
    return layer.functions


_view_kernel = kernel_of(REGISTRY["view"])
_fast_view = view_function("view", "input_shape")
_fast_expand = view_function("expand", "input_shape")


def _view(value: Tensor, size: tuple[int, ...]) -> Tensor:
    """A view with dimensions of size 1 added or removed."""
    a = value._array
    if a.shape == size:
        return value
    if beside_levels(value):
        return _fast_view(value, a.reshape(size) if is_row_major(a) else _view_kernel(a, size=size), a.shape)
    return apply(REGISTRY["view"], [value], {"size": size})


def align_levels(x: Tensor, levels: Sequence[Level], ndim: int | None = None) -> Tensor:
    """`x`'s value with a leading dimension for each of `levels`, of size 1 where `x` does not belong to the level.

    Args:
        ndim: the number of logical dimensions, padded with ones on the left; default: that of `x`.
    """
    if x.__class__ is BatchedTensor:
        value, own_levels = x._value, x._levels
        if own_levels == levels and (ndim is None or value._array.ndim - len(own_levels) >= ndim):
            return value
    else:
        value, own_levels = x, ()
    shape = value._array.shape
    sizes = dict(zip((level.number for level in own_levels), shape, strict=False))
    logical = shape[len(own_levels):]
    pad = 0 if ndim is None else max(ndim - len(logical), 0)
    return _view(value, (*(sizes.get(level.number, 1) for level in levels), *((1,) * pad), *logical))


def expand_levels(x: Tensor, levels: Sequence[Level]) -> Tensor:
    """`x`'s value with a leading dimension for each of `levels`, expanded where `x` does not belong to the level."""
    if x.__class__ is BatchedTensor and x._levels == levels:
        return x._value
    value = align_levels(x, levels)
    a = value._array
    size = (*[level.size for level in levels], *a.shape[len(levels):])
    if a.shape == size:
        return value
    if beside_levels(value):
        strides = tuple([s if n == m else 0 for n, m, s in zip(a.shape, size, a.strides, strict=True)])
        return _fast_expand(value, view_memory(a, size, strides), a.shape)
    return apply(REGISTRY["expand"], [value], {"size": size})


def repeated(x: Tensor, levels: Sequence[Level]) -> Any:
    """An alias of a plain tensor without a graph, as the same example in each batch; it shares the version counter."""
    a = x._array
    size = (*[level.size for level in levels], *a.shape)
    value: Tensor = wrap(view_memory(a, size, ((0,) * len(levels)) + a.strides))
    if x._counter is None:
        x._counter = [0]
    value._counter = x._counter
    return make_batched(value, levels)


def add_levels(x: Tensor, levels: Sequence[Level]) -> Any:
    """`x`, made to belong to all of `levels` as well."""
    own_levels = x._levels if type(x) is BatchedTensor else ()
    if all(level in own_levels for level in levels):
        return x
    union = tuple(sorted({*own_levels, *levels}, key=lambda level: level.number))
    tangents = _batched_tangents(x, union) if open_levels else None
    if not tangents:
        return make_batched(expand_levels(x, union), union)
    # The tangents may belong to levels that the primal did not: expand both.
    value = x._value if type(x) is BatchedTensor else x
    out = make_batched(expand_levels(make_batched(strip_levels(value, min(tangents)), own_levels), union), union)
    for number in sorted(tangents):
        tangent = add_levels(gradient_for_batched(tangents[number], x), union)
        set_tangent(out._value, gradient_for_value(tangent, out), number)
    return out


def _batched_tangents(x: Tensor, levels: Sequence[Level]) -> dict[int, Tensor] | None:
    """The tangents of `x`'s value by level number, if one of them belongs to one of `levels`; else None."""
    value = x._value if type(x) is BatchedTensor else x
    result = {number: t for number in tangent_levels([value]) if (t := tangent_of(value, number)) is not None}
    if any(level in levels for t in result.values() if type(t) is BatchedTensor for level in t._levels):
        return result
    return None


def lift_tangents(inputs: Sequence[Any], levels: Sequence[Level]) -> list[Any]:
    """The inputs, those whose tangents alone belong to `levels` expanded to them."""
    return [add_levels(x, levels) if isinstance(x, Tensor) and _batched_tangents(x, levels) else x for x in inputs]


def detach_batched(x: BatchedTensor) -> Any:
    """The same memory without a graph."""
    return make_batched(x._value.detach(), x._levels)


def gradient_for_value(g: Any, x: Any) -> Any:
    """A (co)tangent of `x` as a (co)tangent of its value: only levels beyond those of `x` stay batched."""
    own_levels = x._levels if type(x) is BatchedTensor else ()
    union = vmap_levels([x, g])
    extra_levels = [level for level in union if level not in own_levels]
    order = [union.index(level) for level in (*extra_levels, *own_levels)]
    if open_levels and union and _batched_tangents(g, union):  # tangents of `g` of its levels become plain, too
        g = add_levels(g, union)
    return make_batched(_permute_levels(expand_levels(g, union), order), extra_levels)


def gradient_for_batched(g: Any, x: Any) -> Any:
    """The inverse of `gradient_for_value`: a (co)tangent of `x`'s value as a (co)tangent of `x`."""
    own_levels = x._levels if type(x) is BatchedTensor else ()
    value, extra_levels = (g._value, g._levels) if type(g) is BatchedTensor else (g, ())
    levels = (*extra_levels, *own_levels)
    union = tuple(sorted(levels, key=lambda level: level.number))
    return make_batched(_permute_levels(value, [levels.index(level) for level in union]), union)


def _permute_levels(value: Tensor, order: Sequence[int]) -> Tensor:
    """The leading dimensions in another order."""
    if list(order) == sorted(order):
        return value
    rest = range(len(order), value._array.ndim)
    return apply(REGISTRY["permute"], [value], {"dims": (*order, *rest)})


def remove_level(x: Any, level: Level) -> tuple[Any, int | None]:
    """`x` without `level`, its innermost, and the dimension that was batched there (None: none was)."""
    if type(x) is not BatchedTensor or x._levels[-1] is not level:
        return x, None
    outer = make_batched(x._value, x._levels[:-1])  # the batch dimension becomes its first
    dim = x._in_dims[-1] if len(x._in_dims) == len(x._levels) else 0
    return (functions().movedim(outer, 0, dim) if dim else outer), dim


handlers.batched_class, handlers.align_levels = BatchedTensor, align_levels

__all__ = [
    "BatchedTensor",
    "Level",
    "active_levels",
    "add_levels",
    "align_levels",
    "detach_batched",
    "expand_levels",
    "gradient_for_batched",
    "gradient_for_value",
    "is_batched",
    "lift_tangents",
    "make_batched",
    "remove_level",
    "repeated",
    "set_levels",
    "vmap_level",
    "vmap_levels",
]
