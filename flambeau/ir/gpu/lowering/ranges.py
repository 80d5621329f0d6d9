"""Ranges of indices on devices: kernels assert them, so that the host does not wait for the elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...graph.value import INT64, Unsupported, Value
from ...lowering.data_guards import DataGuards
from ...lowering.indexed_kernels import scatter_add, scatter_set, take
from ..device_kernels import device_kernel


class Ranges(DataGuards):
    """Gathers and scatters whose kernels check their indices.

    Attributes:
        asserted: the value with the address that kernels write to where an index is out of range; None: graphs have
            data guards, as on the CPU.
        deterministic: whether sums at indices have a fixed order.
        effects: values that assert, and that no result depends on.
    """

    asserted: Value | None = None
    deterministic = False
    effects: Sequence[Value] = ()

    def assert_by(self, address: int) -> None:
        """Let kernels assert ranges, by writing to this address."""
        self.asserted = self.graph.constant(np.array([address], np.int64))

    def requires_range(self, index: Value, count: int, but: int | None = None) -> None:
        if self.asserted is None:
            super().requires_range(index, count, but)
        elif index.size:
            [made] = device_kernel("assert_range", [index, self.asserted], [((1,), np.dtype(np.uint8))], count=count,
                                   but=but)
            if made not in self.effects:
                self.effects = [*self.effects, made]

    def check_probabilities(self, *values: Value) -> None:
        if self.asserted is None:
            super().check_probabilities(*values)
            return
        g = self.graph
        for x in values:
            inside = g.apply("and", g.apply("ge", x, 0.0), g.apply("le", x, 1.0))
            self.requires_range(g.cast(g.apply("not", inside), np.dtype(np.uint8)), 1)

    def taken(self, x: Value, index: Value, shape: tuple[int, ...], dim: int, wraps: bool = False) -> Value:
        """A gather along a dimension, as `take` of `indexed_kernels`, that checks its indices.

        Args:
            wraps: whether negative indices count from the end.
        """
        if x.dtype.itemsize > 8:
            raise Unsupported(f"elements of {x.dtype}")
        if self.asserted is None:
            index = self._from_start(index, x.shape[dim]) if wraps else index
            self.requires_range(index, x.shape[dim])
            return take(x, index, shape, dim)
        return device_kernel("asserted_take", [x, index, self.asserted], [(shape, x.dtype)], dim=dim, wraps=wraps)[0]

    def scattered(self, source: Value, index: Value, shape: tuple[int, ...], dim: int, op: str = "add",
                  wraps: bool = False) -> Value:
        """A scatter into zeros of a shape, as `scatter_add` and `scatter_set`, that checks its indices."""
        if source.dtype.itemsize > 8 or source.dtype.kind == "c":
            raise Unsupported(f"elements of {source.dtype}")
        if self.asserted is None:
            index = self._from_start(index, shape[dim]) if wraps else index
            self.requires_range(index, shape[dim])
            return (scatter_add if op == "add" else scatter_set)(source, index, shape, dim)
        ordered = True if self.deterministic and source.dtype.kind not in "biu" else None
        return device_kernel("asserted_put", [source, index, self.asserted], [(shape, source.dtype)], dim=dim, op=op,
                             wraps=wraps, ordered=ordered)[0]

    def _from_start(self, index: Value, count: int) -> Value:
        """Indices of which negative ones count from the end, as int64."""
        wide = self.graph.cast(index, INT64)
        if index.dtype.kind == "u":
            return wide
        return self.graph.select(self.graph.apply("lt", wide, 0), wide + count, wide)

    def _checked_index(self, index: Any) -> Value:
        if not isinstance(index, Value) or index.dtype.name not in ("int32", "int64") or not index.size:
            raise Unsupported("an index of this dtype or shape")
        return index


__all__ = ["Ranges"]
