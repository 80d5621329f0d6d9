"""Views after in-place writes: where a view lies in its base, and the history it gets anew.

A write through a view changes its base, so the *base* gets the new history (`CopySlices`),
and every view of it becomes stale: its `grad_fn` is made anew, as a selection of positions
from the base, when it is next asked for. This is PyTorch's design (its issue #3313).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..backends.numpy.memory import address, lying, owner
from ..engine.inlined_rules import plan_of
from ..engine.node import FREED_MESSAGE, Extra, Node, OpNode, layer, next_number
from ..ops.declare import REGISTRY
from ..shapes import contiguous_strides
from .dtype_views import replayed
from .tensor import Tensor


class Geometry:
    """Where a view lies in its base: positions in the base's own, row-major order.

    Holds shapes and strides only, no memory; what it gives is made when asked for.
    """

    __slots__ = ("base_dtype", "base_shape", "base_strides", "dtype", "offset", "shape", "strides")

    def __init__(self, base: np.ndarray, view: np.ndarray) -> None:
        self.base_shape, self.base_strides, self.base_dtype = base.shape, base.strides, base.dtype
        self.shape, self.strides, self.dtype = view.shape, view.strides, view.dtype
        offset = address(view) - address(base)
        if not 0 <= offset <= base.nbytes:  # far apart, or in other memory, if the base was given other `data` since
            offset += address(owner(base)) - address(owner(view))
        self.offset = offset

    def __repr__(self) -> str:
        return (f"Geometry({self.shape}, {self.strides}, {self.offset} of {self.base_shape}, {self.base_strides}, "
                f"{self.base_dtype} as {self.dtype})")

    def repeated(self, sizes: tuple[int, ...]) -> Geometry:
        """The same in each of as many bases side by side: what has `sizes` in front."""
        reach = self.base_dtype.itemsize
        if 0 not in self.base_shape:
            reach += sum((n - 1) * t for n, t in zip(self.base_shape, self.base_strides, strict=True))
        front: list[int] = []
        for n in reversed(sizes):
            front.insert(0, reach)
            reach *= n
        found = object.__new__(Geometry)
        found.base_shape, found.base_strides = (*sizes, *self.base_shape), (*front, *self.base_strides)
        found.shape, found.strides = (*sizes, *self.shape), (*front, *self.strides)
        found.base_dtype, found.dtype, found.offset = self.base_dtype, self.dtype, self.offset
        return found

    def _memory(self, dtype: Any, fill: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Memory that holds both base and view: all of it, the base's elements, and the view's."""
        item = self.base_dtype.itemsize
        offset = self.offset // item
        first = min(0, offset)
        reach = max(_extent(self.base_shape, self.base_strides, item), offset + _extent(self.shape, self.strides, item))
        memory = np.full(reach - first, fill, dtype)
        wide = memory.itemsize
        base = as_strided(memory[-first:], self.base_shape, [wide * (t // item) for t in self.base_strides])
        view = as_strided(memory[offset - first:], self.shape, [wide * (t // item) for t in self.strides])
        return memory, base, view

    def positions(self) -> np.ndarray:
        """The view's elements, in its shape, as positions in the flattened base; -1 where they are none of it."""
        if self.dtype != self.base_dtype:
            raise NotImplementedError("a view of another dtype")
        if 0 in self.shape:
            return np.zeros(self.shape, np.int64)
        _, base, view = self._memory(np.int64, -1)
        base[...] = np.arange(base.size).reshape(self.base_shape)
        return view

    def window(self, whole: np.ndarray) -> np.ndarray | None:
        """The view, in a row-major array shaped as the base; None where the base was not row-major."""
        if self.dtype != self.base_dtype or self.offset < 0 or not whole.flags.c_contiguous:
            return None
        item = self.base_dtype.itemsize
        if 0 not in self.base_shape and any(
                n != 1 and t != s * item for n, t, s in zip(self.base_shape, self.base_strides,
                                                            contiguous_strides(self.base_shape), strict=True)):
            return None
        try:
            wide = whole.itemsize  # gradients may be of another precision
            return lying(whole, self.shape, tuple(t // item * wide for t in self.strides), self.offset // item * wide)
        except (ValueError, TypeError):
            return None

    def of_parts(self) -> Geometry:
        """The same place, in real numbers: complex ones are pairs of them, along one more dimension."""
        parts = object.__new__(Geometry)
        parts.offset = self.offset
        if self.dtype.kind == "c":
            half = np.dtype(f"f{self.dtype.itemsize // 2}")
            parts.shape, parts.strides = (*self.shape, 2), (*self.strides, half.itemsize)
        else:
            half, parts.shape, parts.strides = self.dtype, self.shape, self.strides
        parts.dtype = parts.base_dtype = half
        parts.base_shape, parts.base_strides = self.base_shape, self.base_strides
        if self.base_dtype.kind == "c":
            parts.base_shape = (*self.base_shape, 2)
            parts.base_strides = (*self.base_strides, half.itemsize)
        return parts

    def is_expanded(self) -> bool:
        """Whether an element is repeated along a dimension, as `expand` does."""
        return 0 not in self.shape and any(s == 0 and n > 1 for s, n in zip(self.strides, self.shape, strict=True))

    def take(self, whole: np.ndarray) -> np.ndarray:
        """A copy of the view's elements of a row-major array shaped as the base; 0 where they are none of it."""
        part = self.window(whole)
        if part is not None:
            return np.array(part, order="C", copy=True)
        positions = self.positions()
        if not whole.size:
            return np.zeros(positions.shape, whole.dtype)
        found = np.array(whole.reshape(-1)[positions])
        found[positions < 0] = np.zeros((), whole.dtype)
        return found

    def put(self, whole: np.ndarray, values: object) -> None:
        """Write values at the view's elements of a row-major array shaped as the base."""
        part = self.window(whole)
        if part is not None:
            part[...] = values
            return
        positions = self.positions()
        inside = positions >= 0
        whole.reshape(-1)[positions[inside]] = np.broadcast_to(np.asarray(values), positions.shape)[inside]

    def embed(self, values: np.ndarray) -> np.ndarray:
        """Zeros shaped as the base, with the values added at the view's elements.

        What falls between the base's elements is lost; where elements of the base are one, they share.
        """
        whole = np.zeros(self.base_shape, values.dtype)
        shared = _overlap(self.base_shape, self.base_strides)
        part = None if shared or _overlap(self.shape, self.strides) else self.window(whole)
        if part is not None:
            part[...] = values
            return whole
        if 0 in self.shape or not whole.size:
            return whole
        memory, base, _ = self._memory(values.dtype)
        places, of_base, of_view = self._memory(np.int64)
        places[...] = np.arange(places.size)
        np.add.at(memory, of_view, values)
        whole[...] = base
        if shared:
            sharers = np.bincount(of_base.reshape(-1), minlength=places.size)
            whole /= sharers[of_base]
        return whole


def _extent(shape: tuple[int, ...], strides: tuple[int, ...], item: int) -> int:
    """How many places of memory elements reach over."""
    if 0 in shape:
        return 1
    return 1 + sum((s - 1) * (t // item) for s, t in zip(shape, strides, strict=True))


def _overlap(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether two elements may be one."""
    reach = 0
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return True
            reach += stride * (size - 1)
    return False


def regenerate(view: Tensor) -> None:
    """Give a stale view its history again: its positions, taken from its base as that now is."""
    base = view._base
    counter = view._counter
    assert base is not None
    assert counter is not None
    if view._creation is not None:
        from .dispatch.inplace import refuse_view

        refuse_view(view, indirect=True)
    retained = view._retains
    old, number = view._node, view._output_nr
    view._view_version = counter[0]
    if view._steps is not None:
        node = replayed(view)
    else:
        geometry = Geometry(base._array, view._array)
        from .dispatch.apply import gradient_edge

        op = REGISTRY["_as_strided"]
        plan = plan_of(op, 1, 1)
        node = OpNode()
        node.edges = (gradient_edge(base) if base._requires_grad else None,)
        node.edge_outputs = (base._output_nr,) if base._output_nr else None
        node.extra = node.outputs = node.versions = None
        node.plan = plan
        node.saved = ()
        node.run = None
        node.seq = next_number()
        node.fix = None
        if base._array.dtype.kind == "V" or base._array.dtype.kind == "c":
            types = (base._array.dtype,)
            node.fix = (None, types, False, base._array.dtype.kind == "V")
        node.consts = (geometry,)
    view._node = node
    view._output_nr = 0
    view._requires_grad = True
    view._hooks = None
    if retained:
        keep_retaining(view, old, number)


def follow_write(out: Tensor, extra: Extra) -> None:
    """Give what a write through a view saved as its result the history of that view: a part of the base, as written."""
    view, slices = extra.written(), extra.within()
    if view is not None and view._base is not None:
        out._node, out._output_nr = view.grad_fn, view._output_nr
    elif slices is not None and slices.geometry.dtype == slices.geometry.base_dtype:
        from .fastpath.views import hang

        op = REGISTRY["_as_strided"]
        out._output_nr = 0
        hang(out, slices, 0, op, plan_of(op, 1, 1), (slices.geometry,), out)


def keep_retaining(x: Tensor, old: Node | None, number: int) -> None:
    """Let a tensor that keeps its gradient keep that of its new history, no longer of output `number` of the old."""
    if old is not None and old.extra is not None and old.extra.retained is not None:
        old.extra.retained.pop(number, None)
    x._retains = None
    x.retain_grad()


class CopySlices(Node):
    """The history of a base after a write through a view of it.

    The cotangent of the base is split: the part at the view's positions goes through the
    node of the in-place operator; the rest goes to what the base was before.
    """

    __slots__ = ("drawn", "fn", "geometry")

    def __init__(self, base_edge: Node | None, base_nr: int, geometry: Geometry, fn: OpNode) -> None:
        self.fn: Any = fn  # None once freed
        self.drawn = fn.drawn_edges()
        self.geometry = geometry
        self.edges = (base_edge, *fn.edges[1:])
        numbers = (base_nr, *(fn.edge_outputs or (0,) * len(fn.edges))[1:])
        self.edge_outputs = numbers if any(numbers) else None
        self.outputs = self.extra = self.run = None
        self.seq = next_number()

    def release(self) -> None:
        if self.fn is not None:
            self.fn.release()
            self.fn = None

    def drawn_edges(self) -> list[int] | None:
        return self.drawn

    def vjp(self, cotangents: Any, tensors: bool) -> Any:
        if self.fn is None:
            raise RuntimeError(FREED_MESSAGE)
        geometry, fn = self.geometry, self.fn
        if geometry.dtype != geometry.base_dtype:
            return self._through_parts(cotangents, tensors)
        if tensors:
            functions = layer.functions
            part = functions._strided_part(cotangents, geometry=geometry)
            found = list(fn.vjp(part, True))
            first = found[0]
            if self.edges[0] is not None:
                self._check_distinct()
                if first is None:
                    first = functions.zeros_like(part)
                found[0] = functions._replace_strided(cotangents, first, geometry=geometry)
            return found
        whole = np.array(cotangents, order="C", copy=True)
        found = list(fn.vjp(geometry.take(whole), False))
        first = found[0]
        if self.edges[0] is not None:
            self._check_distinct()
            geometry.put(whole, np.zeros((), whole.dtype) if first is None else first)
            found[0] = whole
        return found

    def _check_distinct(self) -> None:
        if self.geometry.is_expanded():
            raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a "
                               "single memory location. Please clone() the tensor before performing the operation.")

    def _through_parts(self, cotangents: Any, tensors: bool) -> Any:
        """A view of real parts of a complex base, or complex numbers made of a real one: the same, on the parts."""
        functions, geometry, fn = layer.functions, self.geometry, self.fn
        g = cotangents if tensors else layer.wrap(np.asarray(cotangents))
        of_complex = geometry.base_dtype.kind == "c"
        if of_complex:
            g = functions.view_as_real(functions.contiguous(g))
        geometry = geometry.of_parts()
        part = functions._strided_part(g, geometry=geometry)
        shown = part if of_complex else functions.view_as_complex(part)
        found = list(fn.vjp(shown if tensors else shown._array, tensors))
        if self.edges[0] is not None:
            self._check_distinct()
            first = found[0]
            if first is None:
                first = functions.zeros_like(part)
            else:
                first = first if tensors else layer.wrap(first)
                if not of_complex:
                    first = functions.view_as_real(functions.contiguous(first))
            whole = functions._replace_strided(g, first, geometry=geometry)
            if of_complex:
                whole = functions.view_as_complex(whole)
            found[0] = whole if tensors else whole._array
        return found

    def name(self) -> str:
        return "torch::autograd::CopySlices"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'CopySlices' object has no attribute '{name}'")
