"""Sorting, order statistics and binary search over IR values, by a stable sort.

Of equal elements the first one comes first. The process gives them PyTorch's order, which depends on the exchanges of
an unstable sort; values are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.graph.extern_kernels import ExternKernel
from ....ir.graph.value import BOOL, FLOAT32, INT64, Unsupported, Value
from ....ir.lowering.indexed_kernels import take
from ....ir.lowering.namespace import Namespace
from ....runtime.launch import Launch, Spec
from ....shapes import broadcast_shapes, wrap_dim

#: dtypes that kernels sort and search
DTYPES = ("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool")
INT32 = np.dtype(np.int32)


def _sort_launches(outputs: list[Spec], inputs: list[Spec], descending: bool) -> list[Launch]:
    from ....codegen.sorting import merge_sort

    values, places = outputs
    return merge_sort.order(values, places, inputs[0], descending=descending)


def _search_launches(outputs: list[Spec], inputs: list[Spec], right: bool) -> list[Launch]:
    from ....codegen.sorting import binary_search

    sequences, values = inputs
    return binary_search.launches(outputs[0], sequences, values, right=right)


class Ordering(Namespace):
    """Primitives that order elements; a mixin of the namespace."""

    def _sorted(self, x: Value, dim: int, descending: bool) -> tuple[Value, Value]:
        """The sorted elements along a dimension, and their indices."""
        g = self.graph
        if not x.ndim or not x.size:
            return x, g.expand(g.constant(0, INT64), x.shape)
        wide = x if x.dtype.name in DTYPES else g.cast(x, FLOAT32)  # a narrow float
        if wide.dtype.kind not in "biuf":
            raise Unsupported(f"sorting {x.dtype}")
        axis = wrap_dim(dim, x.ndim)
        moved = g.permute(wide, [*(d for d in range(x.ndim) if d != axis), axis])
        rows = g.reshape(g.copy(moved), (x.size // x.shape[axis], x.shape[axis]))
        kernel = ExternKernel("sort", _sort_launches, {"descending": bool(descending)})
        found = g.extern(kernel, [rows], [(rows.shape, wide.dtype), (rows.shape, INT64)])
        back = [*range(axis), x.ndim - 1, *range(axis, x.ndim - 1)]
        values, places = (g.permute(g.reshape(each, moved.shape), back) for each in found)
        return g.cast(values, x.dtype), places

    def _sort(self, x: Value, dim: int = -1, descending: bool = False, stable: bool = False) -> tuple[Value, Value]:
        return self._sorted(x, dim, descending)

    def _sort_stable(self, x: Value, stable: bool = True, dim: int = -1, descending: bool = False) -> Any:
        return self._sorted(x, dim, descending)

    def argsort(self, x: Value, dim: int = -1, descending: bool = False, stable: bool = False) -> Value:
        return self._sorted(x, dim, descending)[1]

    def topk(self, x: Value, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Value, Value]:
        values, places = self._sorted(x, dim, largest)
        if not x.ndim:
            return values, places
        axis = wrap_dim(dim, x.ndim)
        return self.graph.slice(values, axis, 0, k), self.graph.slice(places, axis, 0, k)

    def _selected(self, x: Value, dim: int, rank: int, keepdim: bool) -> tuple[Value, Value]:
        """The element of a rank along a dimension, and its index."""
        values, places = self._sorted(x, dim, False)
        if not x.ndim:
            return values, places
        axis = wrap_dim(dim, x.ndim)
        one = (self.graph.slice(each, axis, rank, 1) for each in (values, places))
        shape = tuple(1 if d == axis else n for d, n in enumerate(x.shape) if keepdim or d != axis)
        first, second = (self.graph.reshape(each, shape) for each in one)
        return first, second

    def kthvalue(self, x: Value, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Value, Value]:
        return self._selected(x, dim, k - 1, keepdim)

    def _median_dim(self, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
        """The lower median; NaN, which is sorted last, if there is one."""
        g = self.graph
        if not x.ndim or not x.size:
            raise Unsupported("the median of no dimensions, or of no elements")
        axis = wrap_dim(dim, x.ndim)
        values, places = self._selected(x, axis, (x.shape[axis] - 1) // 2, keepdim)
        if x.dtype.kind != "f":
            return values, places
        missing = g.apply("ne", x, x)
        shape = values.shape
        any_missing = g.reshape(g.reduce("any", missing, (axis,)), shape)
        first = g.reshape(g.reduce("argmax", g.cast(missing, FLOAT32), (axis,)), shape)
        nan = g.constant(np.nan, x.dtype)
        return g.select(any_missing, nan, values), g.select(any_missing, first, places)

    def _median_all(self, x: Value) -> Value:
        return self._median_dim(self.graph.reshape(x, (x.size,)), 0)[0]

    def _nanmedian_dim(self, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
        """The lower median of the elements that are not NaN, which are sorted first."""
        g = self.graph
        if not x.ndim or not x.size or x.dtype.kind != "f":
            return self._median_dim(x, dim, keepdim)
        axis = wrap_dim(dim, x.ndim)
        values, places = self._sorted(x, axis, False)
        count = g.reduce("sum", g.cast(g.apply("eq", x, x), FLOAT32), (axis,))
        rank = g.cast(g.apply("maximum", g.apply("floor", (count - 1.0) * 0.5), 0.0), INT64)
        ranks = g.unsqueeze(rank, axis)
        shape = ranks.shape if keepdim else rank.shape
        first, second = (g.reshape(take(each, ranks, ranks.shape, axis), shape) for each in (values, places))
        return first, second

    def _nanmedian_all(self, x: Value) -> Value:
        return self._nanmedian_dim(self.graph.reshape(x, (x.size,)), 0)[0]

    # ----- search -----

    def _searchsorted(self, sequence: Value, values: Any, sorter: Any = None, right: bool = False,
                      out_int32: bool = False) -> Value:
        g = self.graph
        if not isinstance(values, Value):
            values = g.constant(values, sequence.dtype if isinstance(values, int) or sequence.dtype.kind == "f"
                                else FLOAT32)
        if sorter is not None:
            sequence = take(sequence, sorter, sequence.shape, sequence.ndim - 1)
        dtype = np.result_type(sequence.dtype, values.dtype)
        if dtype.name not in DTYPES or not sequence.size:
            raise Unsupported(f"a search in {sequence.dtype} of {values.dtype}, or in no elements")
        sequence, wanted = (g.copy(g.cast(each, dtype)) for each in (sequence, values))
        n = sequence.shape[-1]
        if sequence.ndim > 1:
            sequence = g.reshape(sequence, (sequence.size // n, n))
            wanted = g.reshape(wanted, (sequence.shape[0], wanted.size // sequence.shape[0]))
        else:
            wanted = g.reshape(wanted, (wanted.size,))
        kernel = ExternKernel("searchsorted", _search_launches, {"right": bool(right)})
        [places] = g.extern(kernel, [sequence, wanted], [(wanted.shape, INT64)])
        places = g.reshape(places, values.shape)
        return g.cast(places, INT32) if out_int32 else places

    searchsorted = _searchsorted

    def _isin(self, elements: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Value:
        g = self.graph
        elements, test_elements = g.operands([elements, test_elements])
        if not test_elements.size:
            return g.expand(g.constant(bool(invert), BOOL), elements.shape)
        tests = g.reshape(test_elements, (test_elements.size,))
        shape = broadcast_shapes((*elements.shape, 1), tests.shape)
        same = g.apply("eq", g.expand(g.unsqueeze(elements, elements.ndim), shape), g.expand(tests, shape))
        found = g.reduce("any", same, (len(shape) - 1,))
        return g.apply("not", found) if invert else found


__all__ = ["Ordering"]
