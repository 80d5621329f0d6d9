"""Sorts, order statistics, searches and histograms over IR values of a device's program."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....codegen.gpu.sorting import histogram, sorting
from ....dtypes import NARROW
from ....shapes import wrap_dim
from ...graph.value import BOOL, FLOAT32, INT64, Unsupported, Value
from ...lowering.indexed_kernels import take
from ..device_kernels import device_kernel
from .ranges import Ranges

#: elements of the longest rows that are sorted: places are int32
_LONGEST = 1 << 30
#: elements that are compared with each element of `isin` one by one
_FEW = 64


class DeviceOrdering(Ranges):
    """Primitives that order elements."""

    def _rows_of(self, x: Value, axis: int) -> Value:
        """The rows along an axis, (rows, n), row-major."""
        order = [*(d for d in range(x.ndim) if d != axis), axis]
        moved = self.graph.copy(self.graph.permute(x, order))
        return self.graph.reshape(moved, (x.size // x.shape[axis], x.shape[axis]))

    def _of_rows(self, rows: Value, shape: tuple[int, ...], axis: int) -> Value:
        """The array, of another extent along an axis, whose rows these are."""
        lead = [n for d, n in enumerate(shape) if d != axis]
        n = rows.shape[1]
        back = [*range(axis), len(lead), *range(axis, len(lead))]
        return self.graph.permute(self.graph.reshape(rows, (*lead, n)), back)

    def _sorted_rows(self, rows: Value, descending: bool, keep: int | None = None) -> tuple[Value, Value]:
        """Values and places of sorted rows; the first ones of each."""
        if rows.dtype.kind == "c" or rows.shape[1] >= _LONGEST:
            raise Unsupported(f"rows of {rows.shape[1]} elements of {rows.dtype}")
        count, n = rows.shape
        select = keep is not None and keep < n and sorting.can_select(n, keep)
        shape = (count, keep if select and keep is not None else n)
        order, values = device_kernel("first_of_sorted" if select else "sort", [rows], [
            (shape, INT64), (shape, rows.dtype)], descending=bool(descending))
        if keep is not None and not select:
            values, order = (self.graph.slice(each, 1, 0, keep) for each in (values, order))
        return values, order

    def _ordered(self, x: Value, dim: int, descending: bool, keep: int | None = None) -> tuple[Value, Value]:
        """Values and places of sorted elements along a dimension."""
        if not x.ndim:
            zero = self.graph.constant(0, INT64)
            if keep == 0:
                raise Unsupported("no elements")
            return x, zero
        axis = wrap_dim(dim, x.ndim)
        if not x.size or keep == 0 or (keep is not None and not 0 < keep <= x.shape[axis]):
            raise Unsupported("no elements, or too few")
        found = self._sorted_rows(self._rows_of(x, axis), descending, keep)
        values, order = (self._of_rows(each, x.shape, axis) for each in found)
        return values, order

    def _sort(self, x: Value, dim: int = -1, descending: bool = False, stable: bool = False) -> tuple[Value, Value]:
        return self._ordered(x, dim, descending)

    def _sort_stable(self, x: Value, stable: bool = True, dim: int = -1, descending: bool = False
                     ) -> tuple[Value, Value]:
        return self._ordered(x, dim, descending)

    def argsort(self, x: Value, dim: int = -1, descending: bool = False, stable: bool = False) -> Value:
        return self._ordered(x, dim, descending)[1]

    def topk(self, x: Value, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Value, Value]:
        return self._ordered(x, dim, largest, k)

    # ----- order statistics -----

    def _statistic(self, x: Value, dim: int, keepdim: bool, place: Any) -> tuple[Value, Value]:
        """The element and its index at a place of each sorted row: (sorted rows, order) -> (rows, 1) places."""
        if not x.ndim:
            return x, self.graph.constant(0, INT64)
        axis = wrap_dim(dim, x.ndim)
        if not x.size:
            raise Unsupported("no elements")
        values, order = self._sorted_rows(self._rows_of(x, axis), False)
        at = place(values, order)
        shape = tuple(1 if d == axis else n for d, n in enumerate(x.shape) if keepdim or d != axis)
        picked = [self.graph.reshape(take(each, at, (each.shape[0], 1), 1), shape) for each in (values, order)]
        return picked[0], picked[1]

    def _constant_place(self, rows: Value, place: int) -> Value:
        return self.graph.expand(self.graph.constant(place, INT64), (rows.shape[0], 1))

    def kthvalue(self, x: Value, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Value, Value]:
        if not 1 <= k <= (x.shape[wrap_dim(dim, x.ndim)] if x.ndim else 1):
            raise Unsupported("a rank out of range")
        return self._statistic(x, dim, keepdim, lambda values, _: self._constant_place(values, k - 1))

    def _middle(self, ignore_nan: bool) -> Any:
        """The place of the lower median of sorted rows; of the first NaN, if there is one that is not ignored."""
        def place(values: Value, _: Value) -> Value:
            g, n = self.graph, values.shape[1]
            if values.dtype.kind in "biu":
                return self._constant_place(values, (n - 1) // 2)
            wide = g.cast(values, FLOAT32) if values.dtype in NARROW else values
            numbers = g.reshape(g.reduce("sum", g.cast(g.apply("eq", wide, wide), INT64), (1,)), (values.shape[0], 1))
            if ignore_nan:
                middle = self.graph.apply("maximum", numbers - 1, 0)
                return self._halves(middle)
            return g.select(g.apply("lt", numbers, n), numbers, g.constant((n - 1) // 2, INT64))

        return place

    def _halves(self, x: Value) -> Value:
        """Half of integers that are not negative, rounded down."""
        return self.graph.make("div", (x, self.graph.constant(2, INT64)), None, x.shape, INT64)

    def _median_dim(self, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
        return self._statistic(x, dim, keepdim, self._middle(False))

    def _nanmedian_dim(self, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
        return self._statistic(x, dim, keepdim, self._middle(True))

    def _median_all(self, x: Value) -> Value:
        return self._median_dim(self.graph.reshape(x, (x.size,)), 0)[0]

    def _nanmedian_all(self, x: Value) -> Value:
        return self._nanmedian_dim(self.graph.reshape(x, (x.size,)), 0)[0]

    def mode(self, x: Value, dim: int = -1, keepdim: bool = False) -> tuple[Value, Value]:
        def place(values: Value, _: Value) -> Value:
            g, (rows, n) = self.graph, values.shape
            places = g.expand(g.constant(np.arange(n)), (rows, n))
            if n == 1:
                return self._constant_place(values, 0)
            wide = g.copy(g.cast(values, FLOAT32) if values.dtype in NARROW else values)
            if values.dtype == BOOL:
                wide = g.cast(values, np.dtype(np.uint8))
            [starts] = device_kernel("search", [wide, wide], [(values.shape, INT64)], right=False)
            if wide.dtype.kind == "f":  # each NaN is a run of its own
                starts = g.select(g.apply("eq", wide, wide), starts, places)
            return g.reshape(g.reduce("argmax", g.apply("sub", places, starts), (1,)), (rows, 1))

        return self._statistic(x, dim, keepdim, place)

    # ----- searches -----

    def _searchsorted(self, boundaries: Value, values: Any, sorter: Any = None, right: bool = False,
                      out_int32: bool = False) -> Value:
        g = self.graph
        if not isinstance(values, Value) or not boundaries.size or not values.size or boundaries.dtype == BOOL:
            raise Unsupported("a search without elements")
        if values.dtype != boundaries.dtype:
            wide = np.result_type(*(FLOAT32 if each.dtype in NARROW else each.dtype for each in (values, boundaries)))
            values, boundaries = g.cast(values, wide), g.cast(boundaries, wide)
        if boundaries.ndim > 1 and boundaries.shape[:-1] != values.shape[:-1]:
            raise Unsupported("boundaries of another shape")
        inputs = [g.copy(boundaries), g.copy(values)]
        if sorter is not None:
            if sorter.shape != boundaries.shape or sorter.dtype != INT64:
                raise Unsupported("a sorter of another shape")
            self.requires_range(sorter, boundaries.shape[-1])
            inputs.append(g.copy(sorter))
        [found] = device_kernel("search", inputs, [(values.shape, np.dtype(np.int32) if out_int32 else INT64)],
                                right=bool(right))
        return found

    def _isin(self, elements: Any, tests: Any, assume_unique: bool = False, invert: bool = False) -> Value:
        g = self.graph
        if not isinstance(elements, Value):
            if not isinstance(tests, Value):
                raise Unsupported("numbers alone")
            elements = g.constant(elements, tests.dtype)
        elif not isinstance(tests, Value):
            tests = g.constant(tests, elements.dtype)
        if not tests.size or not elements.size or elements.dtype != tests.dtype:
            raise Unsupported("no elements, or several dtypes")
        flat = g.reshape(tests, (tests.size,))
        if tests.size <= _FEW:
            found = g.reduce("any", g.apply("eq", g.unsqueeze(elements, elements.ndim), flat), (elements.ndim,))
        else:
            ordered = g.reshape(self._sorted_rows(g.copy(g.reshape(flat, (1, flat.size))), False)[0], flat.shape)
            at = g.apply("minimum", self._searchsorted(ordered, elements), flat.size - 1)
            near = g.reshape(take(ordered, g.reshape(at, (at.size,)), (at.size,), 0), elements.shape)
            found = g.apply("eq", near, elements)
        return g.apply("not", found) if invert else found

    def histc(self, x: Value, bins: int = 100, min: float = 0, max: float = 0) -> Value:
        g, dtype = self.graph, x.dtype
        flat = g.reshape(x, (x.size,))
        if bins <= 0 or not x.size or dtype.kind == "b" or min > max:
            raise Unsupported("no bins or elements")
        wide = g.cast(flat, FLOAT32) if dtype in NARROW else flat

        def rounded(value: Value) -> Value:
            return g.cast(g.cast(value, dtype), wide.dtype)

        left, right = (g.constant(each, wide.dtype) for each in (min, max))
        if min == max:
            left, right = (g.reduce(name, wide, (0,)) for name in ("min", "max"))
            point = g.apply("eq", left, right)
            left, right = g.select(point, rounded(left - 1), left), g.select(point, rounded(right + 1), right)
            if dtype.kind not in "iu":
                size = g.apply("maximum", g.apply("abs", left), g.apply("abs", right))
                g.conditions.append((g.apply("lt", size, np.inf), True))
        inside = g.apply("and", g.apply("ge", wide, left), g.apply("le", wide, right))
        if wide.dtype.kind in "iu":
            span = g.cast(right - left, np.dtype(np.float64))
            place = g.cast(g.cast((wide - left) * bins, np.dtype(np.float64)) / span, INT64)
        else:
            place = rounded(rounded(wide - left) * float(bins))
            place = g.cast(rounded(place / rounded(right - left)), INT64)
        at = g.select(inside, g.apply("minimum", place, bins - 1), g.constant(-1, INT64))
        return g.cast(self.counts_of(at, bins), dtype)

    def counts_of(self, places: Value, bins: int) -> Value:
        """How often each of the first integers occurs in a vector of int64; negative ones are not counted."""
        if bins <= histogram.MOST_BINS:
            return device_kernel("histogram", [self.graph.copy(places)], [((bins,), INT64)])[0]
        counted = self.graph.cast(self.graph.apply("ge", places, 0), INT64)
        return self.scattered(self.graph.copy(counted), self.graph.apply("maximum", places, 0), (bins,), 0)


__all__ = ["DeviceOrdering"]
