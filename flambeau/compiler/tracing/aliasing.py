"""Aliasing: storages, which map the memory of arrays to IR values while a function is traced.

Several tensors may share bytes. A `Storage` is identified by the array that owns the memory; it holds the IR value of
all its elements in memory order, and derives the values of views from it. A write replaces the storage's value: the
graph is functional (the tracer functionalizes in-place operators).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...backends.numpy.memory import address, owner
from ...ir.graph import view_algebra as algebra
from ...ir.graph.extern_kernels import FallbackKernel
from ...ir.graph.inputs import input_for_array, memory_order
from ...ir.graph.value import Graph, Unsupported, Value
from .extern_calls import Reinterpretation


def place(a: np.ndarray) -> tuple:
    """Return the address and layout of an array: equal for arrays that are the same view of the same bytes."""
    return address(a), a.shape, a.strides, a.dtype


def group_by_storage(tensors: Sequence[Any]) -> list[list[int]]:
    """Return the positions of tensors, grouped by the array that owns their memory."""
    groups: dict[int, list[int]] = {}
    for i, x in enumerate(tensors):
        groups.setdefault(id(owner(x._array)), []).append(i)
    return list(groups.values())


def span(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return a 1-d array over the memory from the first element of any of the arrays to the last.

    Raises:
        Unsupported: dtypes differ, a stride is negative, or an address is not aligned to the element size.
    """
    start, size = min(map(address, arrays)), arrays[0].itemsize
    count = 0
    for a in arrays:
        if a.dtype != arrays[0].dtype or any(s < 0 or s % size for s in a.strides) or (address(a) - start) % size:
            raise Unsupported("arguments that share memory and view it as different dtypes")
        if a.size:
            count = max(count, (address(a) - start) // size + extent(a))
    return flat_view(next(a for a in arrays if address(a) == start), count)


def leaf_array(a: np.ndarray) -> np.ndarray:
    """Return the array that becomes a graph input for `a`: its memory's owner if dense and of its dtype, else `a`."""
    root = owner(a)
    return root if memory_order(root) is not None and root.dtype == a.dtype else a


def flat_view(a: np.ndarray, count: int) -> np.ndarray:
    """Return `count` elements of memory as a 1-d array, beginning with the first element of `a`."""
    return as_strided(a, (count,), (a.itemsize,))


def extent(a: np.ndarray) -> int:
    """Return the number of elements of memory from an array's first element to its last, inclusive."""
    return 1 + sum((n - 1) * (s // a.itemsize) for n, s in zip(a.shape, a.strides, strict=True)) if a.size else 0


class Storage:
    """The memory of one array during a trace.

    Attributes:
        root: the owner, if it existed before the call: a strong reference, so that its identity is not reused.
        alive: a weak reference to the owner, if it was allocated during the call.
        start: the owner's address.
        value: the IR value of all elements, in memory order; None if only views are known.
        leaf: the graph input of memory that existed before the call; None for memory allocated since.
        changed: whether it was written to.
    """

    __slots__ = ("_views", "alive", "changed", "graph", "leaf", "root", "start", "value")

    def __init__(self, graph: Graph, root: np.ndarray, value: Value | None, leaf: Value | None = None) -> None:
        self.graph, self.value, self.leaf = graph, value, leaf
        self.root = None if leaf is None else root
        self.alive: Any = None
        self.start = address(root)
        self.changed = False
        self._views: dict[tuple, Value] = {}

    def set_view(self, a: np.ndarray, value: Value) -> None:
        """Record the value of the view `a`."""
        self._views[self._key(a)] = value

    def _key(self, a: np.ndarray) -> tuple:
        return a.shape, a.strides, address(a), a.dtype

    def read(self, a: np.ndarray) -> Value:
        """Return the value of the view `a`."""
        key = self._key(a)
        value = self._views.get(key)
        if value is None:
            value = self._views[key] = self._view(a)
        return value

    def _view(self, a: np.ndarray) -> Value:
        if self.value is None:
            raise Unsupported("a view of memory of which only other views are known")
        value = self.value if a.dtype == self.value.dtype else self._reinterpret(a.dtype)
        strides, offset = self._place(a, value.size)
        if value.op == "view":
            if value.base.op == "constant" and not value.base.shape:  # a broadcast scalar
                return self.graph.expand(value.base, a.shape)
            if value.offset == 0 and value.size == value.base.size and algebra.is_dense(value.shape, value.strides):
                value = value.base
            else:
                value = self.graph.copy(value)
        if any(s < 0 for s in strides):
            raise Unsupported("a view with negative strides")
        return self.graph.view(value, a.shape, strides, offset)

    def _reinterpret(self, dtype: np.dtype) -> Value:
        """Return all elements as another dtype: complex numbers as pairs of real ones, or the reverse."""
        value = self.value
        assert value is not None
        small, large = sorted((value.dtype, dtype), key=lambda kind: kind.itemsize)
        count = value.size * value.dtype.itemsize // dtype.itemsize
        if small.kind + large.kind != "fc" or large.itemsize != 2 * small.itemsize or (
                count * dtype.itemsize != value.size * value.dtype.itemsize):
            raise Unsupported(f"memory of {value.dtype} viewed as {dtype}")
        pairs = self.graph.reinterpret(value, dtype)
        if pairs is not None:
            return pairs
        kernel = FallbackKernel(f"view as {dtype}", Reinterpretation(dtype), f"{value.dtype} viewed as {dtype}")
        [result] = self.graph.extern(kernel, [self.graph.copy(value)], [((count,), dtype)])
        return result

    def _place(self, a: np.ndarray, count: int) -> tuple[tuple[int, ...], int]:
        size = a.itemsize
        offset, rest = divmod(address(a) - self.start, size)
        if rest or any(s % size for s in a.strides):
            raise Unsupported("a view that is not aligned to its element size")
        if a.size and all(s >= 0 for s in a.strides) and not 0 <= offset <= count - extent(a):
            raise Unsupported("a view beyond the memory of an argument")
        return tuple(s // size for s in a.strides), offset if a.size else 0

    def write(self, a: np.ndarray, value: Value) -> None:
        """Record a write of `value`, of the shape of `a`, to the view `a`."""
        self.changed = True
        if self.value is None:
            raise Unsupported("a write to memory of which only views are known")
        if a.dtype != self.value.dtype:
            raise Unsupported(f"a write to memory of {self.value.dtype} as {a.dtype}")
        order = memory_order(a)
        if order is not None and a.size == self.value.size and address(a) == self.start:
            dense = value if order == list(range(a.ndim)) else self.graph.permute(value, order)
            self.value = self.graph.reshape(dense, self.value.shape) if dense.op != "view" or (
                dense.shape == self.value.shape) else self.graph.reshape(self.graph.copy(dense), self.value.shape)
            self._views = {self._key(a): value}
            return
        strides, offset = self._place(a, self.value.size)
        if any(n > 1 and s == 0 for n, s in zip(a.shape, strides, strict=True)):
            raise Unsupported("a write to a view with stride 0")
        self.value = self.graph.assemble(self.value.shape, self.value, [value], [(strides, offset)])
        self._views = {self._key(a): value}


def result_storage(graph: Graph, a: np.ndarray, value: Value) -> Storage:
    """Return the storage of an array that was just computed and holds `value`."""
    root = owner(a)
    order = memory_order(a)
    if root.nbytes != a.nbytes or order is None:  # the rest of the memory is unknown
        storage = Storage(graph, root, None)
        storage.set_view(a, value)
        return storage
    dense = value if order == list(range(a.ndim)) else graph.permute(value, order)
    storage = Storage(graph, root, dense)
    storage.set_view(a, value)
    return storage


def input_storage(graph: Graph, a: np.ndarray, number: int) -> tuple[Storage, Value]:
    """Return the storage of an array that existed before the call, as graph input `number`, and the input."""
    leaf = input_for_array(graph, a, number)
    return Storage(graph, a, leaf, leaf), leaf


__all__: list[Any] = [
    "Storage",
    "address",
    "extent",
    "flat_view",
    "group_by_storage",
    "input_storage",
    "memory_order",
    "owner",
    "place",
    "result_storage",
    "span",
]
