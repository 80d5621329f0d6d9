"""Memory as a graph sees it: which value the bytes of an array hold at this moment of a function's run.

Tensors come and go, and several may show the same bytes; a *storage* is the memory itself, found by the array that
owns it. It knows the value of all its elements in the order of memory, and hands out views of it. A write gives it
another value: the graph itself never changes anything.
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
    """Which bytes an array shows, and as what."""
    return address(a), a.shape, a.strides, a.dtype


def group_by_storage(tensors: Sequence[Any]) -> list[list[int]]:
    """The positions of tensors, those together that lie in the memory of one array."""
    found: dict[int, list[int]] = {}
    for i, x in enumerate(tensors):
        found.setdefault(id(owner(x._array)), []).append(i)
    return list(found.values())


def span(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The memory of arrays of one dtype, from the first element of any to the last.

    Raises:
        Unsupported: they are of several dtypes, seen backwards, or at odd addresses.
    """
    start, size = min(map(address, arrays)), arrays[0].itemsize
    count = 0
    for a in arrays:
        if a.dtype != arrays[0].dtype or any(s < 0 or s % size for s in a.strides) or (address(a) - start) % size:
            raise Unsupported("arguments that share memory, and see it as different kinds of numbers")
        if a.size:
            count = max(count, (address(a) - start) // size + extent(a))
    return flat_view(next(a for a in arrays if address(a) == start), count)


def leaf_array(a: np.ndarray) -> np.ndarray:
    """The array that is a leaf where `a` is found: what owns its memory, if that is in one piece, of its dtype."""
    root = owner(a)
    return root if memory_order(root) is not None and root.dtype == a.dtype else a


def flat_view(a: np.ndarray, count: int) -> np.ndarray:
    """So many elements of memory, from an array's first on."""
    return as_strided(a, (count,), (a.itemsize,))


def extent(a: np.ndarray) -> int:
    """How many elements of memory lie between an array's first and last, both included."""
    return 1 + sum((n - 1) * (s // a.itemsize) for n, s in zip(a.shape, a.strides, strict=True)) if a.size else 0


class Storage:
    """The memory of one array.

    Attributes:
        root: the array, if it was there when the function began: kept so that nothing else can take its place.
        alive: a weak reference to an array that was made since, whose memory may go when the function drops it.
        value: all elements, in the order of memory; None where only parts are known.
        leaf: what the memory held when the function began; None if it was made since.
        changed: whether it was written to.
    """

    __slots__ = ("_exact", "alive", "changed", "graph", "leaf", "root", "start", "value")

    def __init__(self, graph: Graph, root: np.ndarray, value: Value | None, leaf: Value | None = None) -> None:
        self.graph, self.value, self.leaf = graph, value, leaf
        self.root = None if leaf is None else root
        self.alive: Any = None
        self.start = address(root)
        self.changed = False
        self._exact: dict[tuple, Value] = {}

    def remember(self, a: np.ndarray, value: Value) -> None:
        """Note that `a`, just as it lies, shows this value."""
        self._exact[self._key(a)] = value

    def _key(self, a: np.ndarray) -> tuple:
        return a.shape, a.strides, address(a), a.dtype

    def read(self, a: np.ndarray) -> Value:
        """The value that an array in this memory shows."""
        key = self._key(a)
        found = self._exact.get(key)
        if found is None:
            found = self._exact[key] = self._view(a)
        return found

    def _view(self, a: np.ndarray) -> Value:
        if self.value is None:
            raise Unsupported("a part of memory of which only other parts are known")
        value = self.value if a.dtype == self.value.dtype else self._seen_as(a.dtype)
        strides, offset = self._place(a, value.size)
        if value.op == "view":
            if value.base.op == "constant" and not value.base.shape:  # one number everywhere
                return self.graph.expand(value.base, a.shape)
            if value.offset == 0 and value.size == value.base.size and algebra.is_dense(value.shape, value.strides):
                value = value.base
            else:
                value = self.graph.copy(value)
        if any(s < 0 for s in strides):
            raise Unsupported("memory seen backwards")
        return self.graph.view(value, a.shape, strides, offset)

    def _seen_as(self, dtype: np.dtype) -> Value:
        """All elements, complex numbers as pairs of real ones or the other way round."""
        value = self.value
        assert value is not None
        small, large = sorted((value.dtype, dtype), key=lambda kind: kind.itemsize)
        count = value.size * value.dtype.itemsize // dtype.itemsize
        if small.kind + large.kind != "fc" or large.itemsize != 2 * small.itemsize or (
                count * dtype.itemsize != value.size * value.dtype.itemsize):
            raise Unsupported(f"memory of {value.dtype} seen as {dtype}")
        whole = FallbackKernel(f"seen as {dtype}", Reinterpretation(dtype), f"{value.dtype} seen as {dtype}")
        [made] = self.graph.extern(whole, [self.graph.copy(value)], [((count,), dtype)])
        return made

    def _place(self, a: np.ndarray, count: int) -> tuple[tuple[int, ...], int]:
        size = a.itemsize
        offset, rest = divmod(address(a) - self.start, size)
        if rest or any(s % size for s in a.strides):
            raise Unsupported("memory seen at odd addresses")
        if a.size and all(s >= 0 for s in a.strides) and not 0 <= offset <= count - extent(a):
            raise Unsupported("memory beside that of an argument, which was found otherwise")
        return tuple(s // size for s in a.strides), offset if a.size else 0

    def write(self, a: np.ndarray, value: Value) -> None:
        """Let the elements that `a` shows be those of a value of its shape."""
        self.changed = True
        if self.value is None:
            raise Unsupported("a write to memory of which only parts are known")
        if a.dtype != self.value.dtype:
            raise Unsupported(f"a write to memory of {self.value.dtype} as {a.dtype}")
        order = memory_order(a)
        if order is not None and a.size == self.value.size and address(a) == self.start:
            whole = value if order == list(range(a.ndim)) else self.graph.permute(value, order)
            self.value = self.graph.reshape(whole, self.value.shape) if whole.op != "view" or (
                whole.shape == self.value.shape) else self.graph.reshape(self.graph.copy(whole), self.value.shape)
            self._exact = {self._key(a): value}
            return
        strides, offset = self._place(a, self.value.size)
        if any(n > 1 and s == 0 for n, s in zip(a.shape, strides, strict=True)):
            raise Unsupported("memory written several times")
        self.value = self.graph.assemble(self.value.shape, self.value, [value], [(strides, offset)])
        self._exact = {self._key(a): value}


def made(graph: Graph, a: np.ndarray, value: Value) -> Storage:
    """The storage of an array that was just computed, which shows this value."""
    root = owner(a)
    order = memory_order(a)
    if root.nbytes != a.nbytes or order is None:  # what else lies there, nobody knows
        storage = Storage(graph, root, None)
        storage.remember(a, value)
        return storage
    whole = value if order == list(range(a.ndim)) else graph.permute(value, order)
    storage = Storage(graph, root, whole)
    storage.remember(a, value)
    return storage


def given(graph: Graph, a: np.ndarray, number: int) -> tuple[Storage, Value]:
    """The storage of an array that was there before, as leaf `number`, and its leaf."""
    leaf = input_for_array(graph, a, number)
    return Storage(graph, a, leaf, leaf), leaf


__all__: list[Any] = [
    "Storage",
    "address",
    "extent",
    "flat_view",
    "given",
    "group_by_storage",
    "made",
    "memory_order",
    "owner",
    "place",
    "span",
]
