"""Copies of views, basic indices and replaced parts, over IR values of a device's program."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ops.declare import REGISTRY
from ....shapes import wrap_dim
from ...graph.value import Graph, Unsupported, Value
from ...graph.view_algebra import dense_strides

#: operators that copy what a view operator returns -> the view operator
_COPIES = {f"{name}_copy": name for name in (
    "view", "t", "transpose", "permute", "expand", "unsqueeze", "select", "slice", "diagonal", "unfold", "unbind",
    "split", "split_with_sizes", "_squeeze_all", "_squeeze_dim", "_squeeze_dims")}


class CopyOps:
    """Primitives that copy parts of arrays, or write parts into copies."""

    graph: Graph

    def copied_view(self, name: str) -> Any:
        """The function of an operator that copies a view; None for other operators."""
        of = _COPIES.get(name)
        if of is None:
            return None
        view = REGISTRY[of if of in REGISTRY else f"_{of}"].forward
        return lambda x, **params: view(self, x, **params)

    # ----- operators that read attributes of arrays -----

    def alias_copy(self, x: Value) -> Value:
        return x

    def _as_strided_copy(self, x: Value, *, geometry: Any, **_: Any) -> Value:
        return self.take_strided(x, geometry)

    def narrow_copy(self, x: Value, *, dim: int, start: int, length: int) -> Value:
        return self.graph.slice(x, wrap_dim(dim, x.ndim), start % max(x.shape[dim], 1), length)

    def _basic_index(self, x: Value, *, key: Any) -> Value:
        shape, strides, offset = part_of(x.shape, x.strides, key)
        return self.graph.view(x, shape, strides, x.offset + offset)

    # ----- views that declarations make by primitives -----

    def diagonal(self, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
        shape, strides, start = diagonal_of(x.shape, x.strides, offset, dim1, dim2)
        return self.graph.view(x, shape, strides, x.offset + start)

    def unfold(self, x: Value, dimension: int, size: int, step: int) -> Value:
        if not x.ndim:
            raise Unsupported("windows of no dimensions")
        d = wrap_dim(dimension, x.ndim)
        if not 0 <= size <= x.shape[d] or step <= 0:
            raise Unsupported("windows that do not fit")
        shape, strides = list(x.shape), list(x.strides)
        shape[d], strides[d] = (x.shape[d] - size) // step + 1, strides[d] * step
        return self.graph.view(x, [*shape, size], [*strides, x.strides[d]], x.offset)

    # ----- parts replaced -----

    def replace_basic_index(self, x: Value, source: Value, shape: tuple[int, ...], key: Any, what: str) -> Value:
        part, strides, offset = part_of(x.shape, dense_strides(x.shape), key)
        if source.shape != tuple(shape):
            raise Unsupported("a source of another shape")
        return self._replaced(x, source, part, strides, offset)

    def replace_diagonal(self, x: Value, source: Value, offset: int, dim1: int, dim2: int) -> Value:
        shape, strides, start = diagonal_of(x.shape, dense_strides(x.shape), offset, dim1, dim2)
        if source.shape != shape:
            raise Unsupported("a source of another shape")
        return self._replaced(x, source, shape, strides, start)

    def _replaced(self, x: Value, source: Value, shape: Any, strides: Any, offset: int) -> Value:
        """The value with a part of it, given in elements of a dense array, replaced."""
        if not source.size:
            return x
        if any(s < 0 for s in strides):
            raise Unsupported("a slice of negative step")
        piece = self.graph.reshape(self.graph.cast(source, x.dtype), tuple(shape))
        return self.graph.assemble(x.shape, x, [piece], [(tuple(strides), offset)])

    # ----- views by a geometry (`_tensor.views.geometry`) -----

    def _window(self, geometry: Any) -> tuple[tuple[int, ...], tuple[int, ...], int] | None:
        """Shape, strides and offset, in elements, of a view within its dense base; None where it is no such view."""
        item = geometry.base_dtype.itemsize
        base = geometry.base_shape
        if geometry.dtype != geometry.base_dtype or geometry.conjugated or geometry.negated or geometry.offset < 0 or (
                any(n != 1 and t != s * item for n, t, s in zip(base, geometry.base_strides, dense_strides(base),
                                                                strict=True))):
            return None
        strides = tuple(t // item for t in geometry.strides)
        offset = geometry.offset // item
        low = offset + sum(min((n - 1) * s, 0) for n, s in zip(geometry.shape, strides, strict=True))
        high = offset + sum(max((n - 1) * s, 0) for n, s in zip(geometry.shape, strides, strict=True))
        if low < 0 or high >= int(np.prod(base)):
            return None
        return tuple(geometry.shape), strides, offset

    def _positions(self, geometry: Any) -> np.ndarray:
        positions: np.ndarray = geometry.positions()
        if positions.nbytes > _MOST_POSITIONS:
            raise Unsupported("a view with gaps of many elements")
        return positions

    def take_strided(self, x: Value, geometry: Any) -> Value:
        window = self._window(geometry)
        if window is not None:
            dense = self.graph.copy(x)
            return self.graph.view(dense, *window)
        positions = self._positions(geometry)
        if not positions.size:
            raise Unsupported("a view of no elements")
        taken = self.take(self.graph.reshape(x, (x.size,)),  # type: ignore[attr-defined]
                          self.graph.constant(np.maximum(positions, 0)))
        if (positions >= 0).all():
            return taken
        return self.graph.select(self.graph.constant(positions >= 0), taken, self.graph.constant(0, x.dtype))

    def replace_strided(self, x: Value, source: Value, geometry: Any) -> Value:
        window = self._window(geometry)
        if window is None or _overlaps(window[0], window[1]):
            raise Unsupported("a view with elements in several places")
        return self._replaced(x, self.graph.expand(source, window[0]), *window)

    def embed_strided(self, x: Value, geometry: Any) -> Value:
        window = self._window(geometry)
        zeros = self.graph.expand(self.graph.constant(0, x.dtype), tuple(geometry.base_shape))
        if window is not None and not _overlaps(window[0], window[1]):
            return self._replaced(zeros, x, *window)
        raise Unsupported("a view with elements in several places")


Part = tuple[tuple[int, ...], tuple[int, ...], int]


def part_of(shape: tuple[int, ...], rows: tuple[int, ...], key: Any) -> Part:
    """Shape, strides and offset of a basic index (slices, integers, None, ...) into an array of these strides.

    >>> part_of((4, 6), (6, 1), (slice(1, 3), Ellipsis, 2))
    ((2,), (6,), 8)
    """
    keys = key if isinstance(key, tuple) else (key,)
    extents, strides, offset, dim = [], [], 0, 0
    for i, each in enumerate(keys):
        if each is None:
            extents.append(1)
            strides.append(0)
        elif each is Ellipsis:
            rest = len(shape) - dim - sum(k is not None for k in keys[i + 1:])
            extents += shape[dim:dim + rest]
            strides += rows[dim:dim + rest]
            dim += rest
        elif isinstance(each, slice):
            indices = range(*each.indices(shape[dim]))
            extents.append(len(indices))
            strides.append(rows[dim] * indices.step)
            offset += indices.start * rows[dim] if len(indices) else 0
            dim += 1
        elif isinstance(each, int) and not isinstance(each, bool) and -shape[dim] <= each < shape[dim]:
            offset += each % shape[dim] * rows[dim]
            dim += 1
        else:
            raise Unsupported(f"indexing by {each!r}")
    return (*extents, *shape[dim:]), (*strides, *rows[dim:]), offset


def diagonal_of(shape: tuple[int, ...], strides: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Part:
    """Shape, strides and offset of a diagonal of an array of these strides.

    >>> diagonal_of((3, 4), (4, 1), 1, 0, 1)
    ((3,), (5,), 1)
    """
    a, b = wrap_dim(dim1, len(shape)), wrap_dim(dim2, len(shape))
    if a == b:
        raise Unsupported("a diagonal of one dimension")
    rest = [d for d in range(len(shape)) if d not in (a, b)]
    length = max(min(shape[a] + min(offset, 0), shape[b] - max(offset, 0)), 0)
    start = (offset * strides[b] if offset >= 0 else -offset * strides[a]) if length else 0
    return ((*(shape[d] for d in rest), length), (*(strides[d] for d in rest), strides[a] + strides[b]), start)


#: bytes of the largest table of positions that a program holds
_MOST_POSITIONS = 1 << 20


def _overlaps(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether elements of a view may share a place."""
    reach = 0
    for s, n in sorted((abs(s), n) for n, s in zip(shape, strides, strict=True) if n > 1):
        if s <= reach:
            return True
        reach += s * (n - 1)
    return False


__all__ = ["CopyOps"]
