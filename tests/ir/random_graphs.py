"""Random graphs: elementwise operations, reductions, views, matmuls, concatenations and data guards."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from flambeau.ir.graph.extern_kernels import FallbackKernel
from flambeau.ir.graph.target import Target
from flambeau.ir.graph.value import BOOL, Graph, Unsupported, Value

_ONE = ("neg", "abs", "tanh", "sin", "cos", "sigmoid")
_TWO = ("add", "sub", "mul", "minimum", "maximum", "add", "mul")
_COMPARED = ("lt", "le", "gt", "ge")
_EXTENTS = (1, 2, 3, 4, 5, 8, 17, 33)
_LARGEST = 40_000


class Random:
    """A graph being made, and what is to come of it.

    Args:
        seed: the same seed makes the same graph.
        dtype: of its floats.
        steps: how many operations, about.

    Attributes:
        graph: the graph.
        inputs: arrays for its inputs, by number.
        targets, conditions: what a program of it is to leave behind, and what it depends on.
    """

    def __init__(self, seed: int, dtype: str = "float64", steps: int = 25) -> None:
        self.random = np.random.default_rng(seed)
        self.dtype = np.dtype(dtype)
        self.graph = Graph()
        self.inputs: list[np.ndarray] = []
        self.values: list[Value] = []
        kinds = (self.reduction, self.view, self.view, self.product, self.joined, self.written, self.chosen, self.row,
                 self.constant, self.foreign)
        liked = [self.pick(kinds), self.pick(kinds)]  # operations that are more frequent in this graph than in others
        self.kinds = (*kinds, *[self.elementwise] * 4, *liked * 4)
        self.extents = [self.pick(_EXTENTS) for _ in range(3)]
        for _ in range(int(self.random.integers(1, 5))):
            self.add_leaf()
        for _ in range(steps):
            try:
                made = self.step()
            except Unsupported:
                continue
            if 0 < made.size <= _LARGEST and made.dtype in (self.dtype, BOOL, np.dtype(np.int64)):
                self.values.append(made)
        self.targets = self._targets()
        self.conditions = self._conditions()

    # ----- choices -----

    def pick(self, options: Sequence) -> object:
        return options[int(self.random.integers(len(options)))]

    def chance(self, p: float) -> bool:
        return bool(self.random.random() < p)

    def shape(self) -> tuple[int, ...]:
        return tuple(self.pick(self.extents) for _ in range(int(self.random.integers(0, 4))))

    def value(self, fits=lambda v: True) -> Value:
        """One of the values, rather a late one."""
        found = [v for v in self.values if fits(v)]
        if not found:
            raise Unsupported("nothing fits")
        at = max(int(self.random.integers(len(found))), int(self.random.integers(len(found))))
        return found[at]

    def floating(self, fits=lambda v: True) -> Value:
        return self.value(lambda v: v.dtype == self.dtype and fits(v))

    def beside(self, x: Value) -> Value:
        """A float that broadcasts with another."""
        return self.floating(lambda v: all(a == b or 1 in (a, b)
                                           for a, b in zip(reversed(v.shape), reversed(x.shape), strict=False)))

    def add_leaf(self) -> None:
        shape = self.shape()
        self.values.append(self.graph.input(len(self.inputs), shape, self.dtype))
        self.inputs.append(self.random.uniform(-1, 1, shape).astype(self.dtype))

    # ----- one operation -----

    def step(self) -> Value:
        return self.pick(self.kinds)()

    def elementwise(self) -> Value:
        x = self.floating()
        if self.chance(0.4):
            return self.graph.apply(self.pick(_ONE), x)
        if self.chance(0.2):
            return self.graph.apply(self.pick(_TWO), x, round(float(self.random.uniform(-2, 2)), 2))
        return self.graph.apply(self.pick(_TWO), x, self.beside(x))

    def reduction(self) -> Value:
        x = self.floating(lambda v: v.ndim > 0)
        dims = [d for d in range(x.ndim) if self.chance(0.5)] or [int(self.random.integers(x.ndim))]
        name = self.pick(("sum", "sum", "sum", "max", "min", "argmax", "any"))
        if name == "argmax":
            return self.graph.reduce("argmax", x, dims[:1])
        if name == "any":
            return self.graph.reduce("any", self.graph.apply("gt", x, 0.9), dims)
        found = self.graph.reduce(name, x, dims)
        if name == "sum":
            found = self.graph.apply("mul", found, 1 / max(1, x.size // max(1, found.size)))
        if self.chance(0.5):
            found = self.graph.reshape(found, [1 if d in dims else n for d, n in enumerate(x.shape)])
        return found

    def row(self) -> Value:
        """Something like a softmax, or a mean that is taken away."""
        x = self.floating(lambda v: v.ndim > 0)
        graph = self.graph
        dims = range(int(self.random.integers(x.ndim)), x.ndim) if self.chance(0.6) else range(
            int(self.random.integers(x.ndim)) + 1)
        kept = [1 if d in dims else n for d, n in enumerate(x.shape)]
        count = prod(x.shape) // prod(kept)
        mean = graph.apply("mul", graph.reshape(graph.reduce("sum", x, dims), kept), 1 / count)
        off = graph.apply("sub", x, mean)
        if self.chance(0.5):
            return off
        e = graph.apply("exp", graph.apply("sub", x, graph.reshape(graph.reduce("max", x, dims), kept)))
        return graph.apply("div", e, graph.reshape(graph.reduce("sum", e, dims), kept))

    def view(self) -> Value:
        x = self.value()
        graph = self.graph
        kind = self.pick(("permute", "reshape", "slice", "select", "unsqueeze", "expand", "copy"))
        if kind == "permute":
            return graph.permute(x, [int(d) for d in self.random.permutation(x.ndim)])
        if kind == "reshape":
            return graph.reshape(x, self.cut(x.size))
        if kind == "copy":
            return graph.copy(x)
        if kind == "unsqueeze":
            return graph.unsqueeze(x, int(self.random.integers(x.ndim + 1)))
        if kind == "expand":
            return graph.expand(x, (self.pick(self.extents), *x.shape) if self.chance(0.5) else tuple(
                self.pick(self.extents) if n == 1 else n for n in x.shape))
        if not x.ndim:
            raise Unsupported("no dimension")
        dim = int(self.random.integers(x.ndim))
        if kind == "select":
            return graph.select_index(x, dim, int(self.random.integers(x.shape[dim])))
        start = int(self.random.integers(x.shape[dim]))
        step = self.pick((1, 1, 2))
        most = -(-(x.shape[dim] - start) // step)
        return graph.slice(x, dim, start, int(self.random.integers(1, most + 1)), step)

    def cut(self, size: int) -> tuple[int, ...]:
        """A shape of so many elements."""
        found = []
        while size > 1 and len(found) < 3:
            divisors = [d for d in range(2, size + 1) if size % d == 0]
            found.append(self.pick(divisors))
            size //= found[-1]
        if size > 1:
            found.append(size)
        if self.chance(0.2):
            found.insert(int(self.random.integers(len(found) + 1)), 1)
        return tuple(found)

    def product(self) -> Value:
        x = self.floating(lambda v: v.ndim >= 2)
        y = self.floating(lambda v: v.ndim >= 2 and v.shape[-2] == x.shape[-1] and all(
            a == b or 1 in (a, b) for a, b in zip(reversed(v.shape[:-2]), reversed(x.shape[:-2]), strict=False)))
        return self.graph.apply("mul", self.graph.matmul(x, y), 1 / x.shape[-1])

    def joined(self) -> Value:
        x = self.floating(lambda v: v.ndim > 0)
        dim = int(self.random.integers(x.ndim))
        y = self.floating(lambda v: v.ndim == x.ndim and all(
            a == b for d, (a, b) in enumerate(zip(v.shape, x.shape, strict=True)) if d != dim))
        return self.graph.cat([x, y], dim)

    def written(self) -> Value:
        """A part of an array overwritten."""
        x = self.floating(lambda v: v.ndim > 0)
        whole = self.graph.copy(x)
        dim = int(self.random.integers(x.ndim))
        start = int(self.random.integers(x.shape[dim]))
        part = self.graph.slice(whole, dim, start, 1)
        piece = self.graph.apply("mul", part, 2.0) if self.chance(0.5) else self.graph.expand(
            self.graph.constant(0.5, self.dtype), part.shape)
        dense = np.zeros(x.shape)
        strides = tuple(s // 8 for s in dense.strides)
        return self.graph.assemble(x.shape, whole, [piece], [(strides, start * strides[dim])])

    def chosen(self) -> Value:
        """A choice between two values that are equal where the condition is in doubt."""
        x = self.floating()
        y = self.beside(x)
        other = self.graph.apply("sub", self.graph.apply("mul", y, 2.0), x)
        return self.graph.select(self.graph.apply(self.pick(_COMPARED), x, y), y, other)

    def constant(self) -> Value:
        return self.graph.constant(self.random.uniform(-1, 1, self.shape()).astype(self.dtype))

    def foreign(self) -> Value:
        x = self.floating()
        whole = FallbackKernel(f"cumsum {len(self.graph.values)}", lambda a: [np.cumsum(a).astype(a.dtype) / a.size])
        return self.graph.extern(whole, [x], [((x.size,), self.dtype)])[0]

    # ----- what is to come of it -----

    def _targets(self) -> list[Target]:
        """New arrays, inputs overwritten by later values, and some of both by the same value."""
        found = [Target(self.value()) for _ in range(int(self.random.integers(1, 5)))]
        for number in range(len(self.inputs)):
            if self.chance(0.4):
                graph_input = self.graph.input(number, self.inputs[number].shape, self.dtype)
                alike = [v for v in self.values if v.shape == graph_input.shape and v.dtype == graph_input.dtype
                         and v is not graph_input]
                if alike:
                    found.append(Target(self.pick(alike), graph_input))
        return found

    def _conditions(self) -> list[tuple[Value, bool]]:
        if self.chance(0.7):
            return []
        x = self.floating()
        truth = self.graph.apply("gt", x, 0.137)
        if truth.ndim:
            truth = self.graph.reduce("any", truth, range(truth.ndim))
        return [(truth, self.chance(0.8))]
