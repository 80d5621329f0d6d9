"""Views after in-place writes: where a view lies in its base, and the history it gets anew.

A write through a view changes its base, so the *base* gets the new history (`CopySlices`),
and every view of it becomes stale: its `grad_fn` is made anew, as a selection of positions
from the base, when it is next asked for. This is PyTorch's design (its issue #3313).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..autograd.node import Node, OpNode, layer, next_number
from ..autograd.runs import plan_of
from ..backends.numpy.memory import lying
from ..ops.declare import REGISTRY
from ..shapes import contiguous_strides
from .tensor import Tensor


class Geometry:
    """Where a view lies in its base: positions in the base's own, row-major order.

    Holds shapes and strides only, no memory; what it gives is made when asked for.
    """

    __slots__ = ("base_dtype", "base_shape", "base_strides", "dtype", "offset", "shape", "strides")

    def __init__(self, base: np.ndarray, view: np.ndarray) -> None:
        self.base_shape, self.base_strides, self.base_dtype = base.shape, base.strides, base.dtype
        self.shape, self.strides, self.dtype = view.shape, view.strides, view.dtype
        self.offset = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]

    def positions(self) -> np.ndarray:
        """The view's elements as positions in the flattened base. Shape: the view's."""
        if self.dtype != self.base_dtype:
            raise NotImplementedError("a view of another dtype")
        item = self.base_dtype.itemsize
        extent = 1 + sum((s - 1) * (t // item) for s, t in zip(self.base_shape, self.base_strides, strict=True))
        if 0 in self.base_shape or 0 in self.shape:
            return np.zeros(self.shape, np.int64)
        lying = np.zeros(extent, np.int64)  # memory position -> logical position
        count = int(np.prod(self.base_shape, dtype=np.int64))
        as_strided(lying, self.base_shape, [8 * (t // item) for t in self.base_strides])[...] = (
            np.arange(count).reshape(self.base_shape))
        start = lying[self.offset // item:]
        return as_strided(start, self.shape, [8 * (t // item) for t in self.strides])

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

    def overlaps(self) -> bool:
        """Whether two of the view's elements may be one of the base's."""
        reach = 0
        for stride, size in sorted(zip(self.strides, self.shape, strict=True)):
            if size > 1:
                if stride <= reach:
                    return True
                reach += stride * (size - 1)
        return False

    def take(self, whole: np.ndarray) -> np.ndarray:
        """A copy of the view's elements of a row-major array shaped as the base."""
        part = self.window(whole)
        return whole.reshape(-1)[self.positions()] if part is None else np.array(part, order="C", copy=True)

    def put(self, whole: np.ndarray, values: object) -> None:
        """Write values at the view's elements of a row-major array shaped as the base."""
        part = self.window(whole)
        if part is None:
            whole.reshape(-1)[self.positions()] = values
        else:
            part[...] = values

    def embed(self, values: np.ndarray) -> np.ndarray:
        """Zeros shaped as the base, with the values added at the view's elements."""
        whole = np.zeros(self.base_shape, values.dtype)
        part = None if self.overlaps() else self.window(whole)
        if part is None:
            np.add.at(whole.reshape(-1), self.positions().reshape(-1), values.reshape(-1))
        else:
            part[...] = values
        return whole


def regenerate(view: Tensor) -> None:
    """Give a stale view its history again: its positions, taken from its base as that now is."""
    base = view._base
    counter = view._counter
    assert base is not None
    assert counter is not None
    retained = view._retains
    view._view_version = counter[0]
    if not base._requires_grad:
        return
    if view._array.dtype != base._array.dtype:
        node = _replayed(view)
    else:
        geometry = Geometry(base._array, view._array)
        from .apply import gradient_edge

        op = REGISTRY["_as_strided"]
        plan = plan_of(op, 1, 1)
        node = OpNode()
        node.edges = (gradient_edge(base),)
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
    view._retains = None
    if retained:
        view.retain_grad()


def _replayed(view: Tensor) -> Node:
    base = view._base
    assert base is not None
    if view._array.dtype.kind == "f" and base._array.dtype.kind == "c":
        real = layer.functions.view_as_real(base)
    else:
        real = layer.functions.view_as_complex(base)
    geometry = Geometry(real._array, view._array)
    node = layer.functions._strided_part(real, geometry=geometry)._node
    assert node is not None
    return node


class CopySlices(Node):
    """The history of a base after a write through a view of it.

    The cotangent of the base is split: the part at the view's positions goes through the
    node of the in-place operator; the rest goes to what the base was before.
    """

    __slots__ = ("fn", "geometry")

    def __init__(self, base_edge: Node | None, base_nr: int, geometry: Geometry, fn: OpNode) -> None:
        self.fn: Any = fn
        self.geometry = geometry
        self.edges = (base_edge, *fn.edges[1:])
        numbers = (base_nr, *(fn.edge_outputs or (0,) * len(fn.edges))[1:])
        self.edge_outputs = numbers if any(numbers) else None
        self.outputs = self.extra = self.run = None
        self.seq = next_number()

    def release(self) -> None:
        self.fn.release()

    def drawn_edges(self) -> list[int] | None:
        return self.fn.drawn_edges()

    def vjp(self, cotangents: Any, tensors: bool) -> Any:
        geometry, fn = self.geometry, self.fn
        if geometry.dtype != geometry.base_dtype:
            return self._through_parts(cotangents, tensors)
        if tensors:
            functions = layer.functions
            part = functions._strided_part(cotangents, geometry=geometry)
            found = list(fn.vjp(part, True))
            first = found[0]
            if self.edges[0] is not None:
                if first is None:
                    first = functions.zeros_like(part)
                found[0] = functions._replace_strided(cotangents, first, geometry=geometry)
            return found
        whole = np.array(cotangents, order="C", copy=True)
        found = list(fn.vjp(geometry.take(whole), False))
        first = found[0]
        if self.edges[0] is not None:
            geometry.put(whole, np.zeros((), whole.dtype) if first is None else first)
            found[0] = whole
        return found

    def _through_parts(self, cotangents: Any, tensors: bool) -> Any:
        """A view of a complex base's real parts: the same, on the parts."""
        functions = layer.functions
        g = cotangents if tensors else layer.wrap(np.asarray(cotangents))
        to_parts = self.geometry.base_dtype.kind == "c"
        parts = functions.view_as_real(g) if to_parts else functions.view_as_complex(g)
        geometry = object.__new__(Geometry)
        for name in Geometry.__slots__:
            setattr(geometry, name, getattr(self.geometry, name))
        geometry.base_dtype = geometry.dtype
        half = geometry.dtype.itemsize
        if to_parts:
            geometry.base_shape = (*self.geometry.base_shape, 2)
            geometry.base_strides = (*self.geometry.base_strides, half)
        else:
            geometry.base_shape = self.geometry.base_shape[:-1]
            geometry.base_strides = self.geometry.base_strides[:-1]
        inner = object.__new__(CopySlices)
        inner.fn, inner.geometry, inner.edges = self.fn, geometry, self.edges
        found = list(inner.vjp(parts if tensors else parts._array, tensors))
        if found[0] is not None:
            back = found[0] if tensors else layer.wrap(np.ascontiguousarray(found[0]))
            back = functions.view_as_complex(back) if to_parts else functions.view_as_real(back)
            found[0] = back if tensors else back._array
        return found

    def name(self) -> str:
        return "torch::autograd::CopySlices"

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_saved_", "_raw_saved_")):
            return getattr(self.fn, name)
        raise AttributeError(f"'CopySlices' object has no attribute '{name}'")
