"""View and concatenation primitives over IR values."""

from __future__ import annotations

from typing import Any

from ...shapes import infer_size, wrap_dim, wrap_dims
from ..graph.value import Graph, Unsupported, Value
from ..graph.view_algebra import dense_strides


class ViewOps:
    """View primitives, and concatenation into new arrays."""

    graph: Graph

    def reshape(self, x: Value, size: Any) -> Value:
        return self.graph.reshape(x, infer_size(tuple(size), x.size))

    view = _squeeze_to = _unsqueeze_to = reshape

    def expand(self, x: Value, size: Any) -> Value:
        size = tuple(size)
        lead = len(size) - x.ndim
        return self.graph.expand(x, tuple(x.shape[i - lead] if n == -1 else n for i, n in enumerate(size)))

    broadcast_to = expand

    def permute(self, x: Value, dims: Any) -> Value:
        return self.graph.permute(x, [wrap_dim(d, x.ndim) for d in dims])

    def transpose(self, x: Value, dim0: int, dim1: int) -> Value:
        order = list(range(x.ndim))
        if order:
            a, b = wrap_dim(dim0, x.ndim), wrap_dim(dim1, x.ndim)
            order[a], order[b] = order[b], order[a]
        return self.graph.permute(x, order)

    def t(self, x: Value) -> Value:
        return self.graph.permute(x, list(range(x.ndim))[::-1])

    def unsqueeze(self, x: Value, dim: int) -> Value:
        return self.graph.unsqueeze(x, wrap_dim(dim, x.ndim + 1))

    def squeeze(self, x: Value, dim: Any = None) -> Value:
        axes = wrap_dims(dim, x.ndim) if dim is not None else tuple(range(x.ndim))
        return self.graph.reshape(x, tuple(n for d, n in enumerate(x.shape) if d not in axes or n != 1))

    def select(self, x: Value, dim: int, index: int) -> Value:
        axis = wrap_dim(dim, x.ndim)
        return self.graph.select_index(x, axis, index % x.shape[axis])

    def slice(self, x: Value, dim: int, start: Any, end: Any, step: int = 1) -> Value:
        axis = wrap_dim(dim, x.ndim)
        indices = range(*slice(start, end, step).indices(x.shape[axis]))
        return self.graph.slice(x, axis, indices.start, len(indices), step)

    def split_with_sizes(self, x: Value, split_sizes: Any, dim: int = 0) -> list[Value]:
        axis, start, parts = wrap_dim(dim, x.ndim), 0, []
        for length in split_sizes:
            parts.append(self.graph.slice(x, axis, start, length))
            start += length
        return parts

    def split(self, x: Value, split_size: int, dim: int = 0) -> list[Value]:
        length = x.shape[wrap_dim(dim, x.ndim)]
        return self.split_with_sizes(x, [min(split_size, length - i) for i in range(0, length, split_size)], dim)

    def unbind(self, x: Value, dim: int = 0) -> list[Value]:
        axis = wrap_dim(dim, x.ndim)
        return [self.graph.select_index(x, axis, i) for i in range(x.shape[axis])]

    # ----- concatenation -----

    def cat(self, *values: Any, dim: int = 0) -> Value:
        operands = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        nonempty = [v for v in operands if v.shape != (0,)]
        if not nonempty:
            raise Unsupported("concatenation of nothing")
        return self.graph.cat(nonempty, wrap_dim(dim, nonempty[0].ndim))

    def stack(self, *values: Any, dim: int = 0) -> Value:
        operands = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        axis = wrap_dim(dim, operands[0].ndim + 1)
        return self.graph.cat([self.graph.unsqueeze(v, axis) for v in operands], axis)

    def _index_strides(self, size: tuple[int, ...], key: Any) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """The shape, strides and offset of a basic index (slices, integers, None, ...) into a dense array."""
        keys = key if isinstance(key, tuple) else (key,)
        rows = dense_strides(size)
        shape, strides, offset, dim = [], [], 0, 0
        for i, each in enumerate(keys):
            if each is None:
                shape.append(1)
                strides.append(0)
            elif each is Ellipsis:
                rest = len(size) - dim - sum(k is not None for k in keys[i + 1:])
                shape += size[dim:dim + rest]
                strides += rows[dim:dim + rest]
                dim += rest
            elif isinstance(each, slice):
                indices = range(*each.indices(size[dim]))
                shape.append(len(indices))
                strides.append(rows[dim] * indices.step)
                offset += indices.start * rows[dim] if len(indices) else 0
                dim += 1
            elif isinstance(each, int) and not isinstance(each, bool):
                offset += each % size[dim] * rows[dim]
                dim += 1
            else:
                raise Unsupported(f"indexing by {type(each).__name__}")
        return (*shape, *size[dim:]), (*strides, *rows[dim:]), offset

    def embed(self, x: Value, size: Any, key: Any) -> Value:
        size = tuple(size)
        shape, strides, offset = self._index_strides(size, key)
        if any(s < 0 for s in strides):
            raise Unsupported("a slice of negative step")
        zeros = self.graph.constant(0, x.dtype)
        return self.graph.assemble(size, zeros, [self.graph.reshape(x, shape)], [(strides, offset)])

    def constant_pad(self, x: Value, pad: Any, value: Any) -> Value:
        shape, cut, key = list(x.shape), x, [slice(None)] * x.ndim
        for i in range(len(pad) // 2):
            axis, before, after = x.ndim - 1 - i, int(pad[2 * i]), int(pad[2 * i + 1])
            first, last = max(-before, 0), x.shape[axis] - max(-after, 0)
            cut = self.graph.slice(cut, axis, first, last - first)
            shape[axis] += before + after
            key[axis] = slice(max(before, 0), max(before, 0) + last - first)
        _, strides, offset = self._index_strides(tuple(shape), tuple(key))
        return self.graph.assemble(shape, self.graph.constant(value, x.dtype), [cut], [(strides, offset)])


__all__ = ["ViewOps"]
