"""Random numbers of compiled programs: PyTorch's distributions over a counter-based generator.

The numbers are not those of the eager generator, whose order of draws is sequential; they have the same distributions.
The state is one int64 in the program's state, which each run advances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.graph.extern_kernels import ExternKernel
from ...ir.graph.value import Graph, Unsupported, Value
from ...ir.lowering.namespace import namespace_of
from ...runtime.launch import Launch, Spec

FLOAT32, FLOAT64, INT64 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)
#: what the state advances by in a run: an odd number, so that all states are passed
STEP = 0x9E3779B97F4A7C15 - (1 << 64)


def _philox_launches(outputs: list[Spec], inputs: list[Spec], draw: int) -> list[Launch]:
    from ...codegen.random import philox

    return philox.launches(outputs[0], inputs[0], draw)


class RandomDraws:
    """The draws of a program, as IR values.

    Args:
        graph: the graph.
        state: its input that holds the state.
    """

    def __init__(self, graph: Graph, state: Value) -> None:
        self.graph, self.state = graph, state
        self._count = 0

    def uniform(self, size: int, dtype: np.dtype) -> Value:
        """Uniform numbers in [0, 1): (size,)."""
        kernel = ExternKernel("philox", _philox_launches, {"draw": self._count})
        self._count += 1
        [result] = self.graph.extern(kernel, [self.state], [((size,), dtype)])
        return result

    def normal(self, size: int, dtype: np.dtype) -> Value:
        """Standard normal numbers, by the Box-Muller transform: (size,)."""
        g = self.graph
        radius = g.apply("sqrt", g.apply("log", 1.0 - self.uniform(size, dtype)) * -2.0)
        return radius * g.apply("cos", self.uniform(size, dtype) * (2 * math.pi))

    def draw(self, name: str, arguments: Sequence[Any], options: dict[str, Any], dtype: np.dtype, size: int) -> Value:
        """The numbers that a function of `kernels.random` would draw: (size,).

        Args:
            name: the function's name.
            arguments: its arguments after the engine; arrays are IR values.
            options: its arguments by name.
            dtype, size: of the result.

        Raises:
            Unsupported: there is no such draw.
        """
        method: Callable[..., Value] | None = getattr(self, f"_{name}", None)
        if method is None or dtype.kind == "c":
            raise Unsupported(f"{name} has no counter-based form")
        wide = FLOAT64 if dtype == FLOAT64 else FLOAT32
        return self.graph.cast(method(size, wide, *arguments, **options), dtype)

    def _bernoulli(self, size: int, wide: np.dtype, n: int, p: float, dtype: Any = None) -> Value:
        return self.graph.apply("lt", self.uniform(size, wide), float(p))

    def _bernoulli_each(self, size: int, wide: np.dtype, p: Value, dtype: Any = None) -> Value:
        wide = FLOAT64 if p.dtype == FLOAT64 else FLOAT32
        return self.graph.apply("lt", self.uniform(size, wide), self.graph.reshape(self.graph.cast(p, wide), (size,)))

    def _uniform(self, size: int, wide: np.dtype, n: int, dtype: Any, low: float = 0.0, high: float = 1.0) -> Value:
        u = self.uniform(size, wide)
        return u if (low, high) == (0, 1) else u * (float(high) - float(low)) + float(low)

    def _normal(
        self,
        size: int,
        wide: np.dtype,
        n: int,
        dtype: Any = None,
        mean: float = 0.0,
        std: float = 1.0,
        contiguous: bool = True,
    ) -> Value:
        z = self.normal(size, wide)
        return z if (mean, std) == (0, 1) else z * float(std) + float(mean)

    def _log_normal(
        self, size: int, wide: np.dtype, n: int, dtype: Any = None, mean: float = 1.0, std: float = 2.0
    ) -> Value:
        return self.graph.apply("exp", self._normal(size, wide, n, dtype, mean, std))

    def _exponential(self, size: int, wide: np.dtype, n: int, dtype: Any = None, rate: float = 1.0) -> Value:
        return self.graph.apply("log", 1.0 - self.uniform(size, wide)) * (-1.0 / float(rate))

    def _randint(self, size: int, wide: np.dtype, n: int, low: int, high: int, dtype: Any = None) -> Value:
        if high - low > 1 << 32:
            raise Unsupported("integers of more than 32 bits")
        steps = self.graph.apply("floor", self.uniform(size, FLOAT64) * float(high - low))
        return self.graph.cast(steps, INT64) + low

    def _multinomial(self, size: int, wide: np.dtype, weights: Value, n: int, replacement: bool = False) -> Value:
        """Indices with probabilities proportional to weights, (categories,) or (rows, categories)."""
        g, categories = self.graph, weights.shape[-1]
        rows = size // n
        weights = g.reshape(g.cast(weights, FLOAT64 if weights.dtype == FLOAT64 else FLOAT32), (rows, categories))
        valid = g.apply("and", g.apply("ge", weights, 0.0), g.apply("lt", weights, math.inf))
        positive = g.apply("gt", g.reduce("max", weights, (1,)), 0.0)
        for condition in ((g.reduce("all", valid, (0, 1)), True), (g.reduce("all", positive, (0,)), True)):
            if condition not in g.conditions:
                g.conditions.append(condition)
        xp = namespace_of(g)
        if replacement and n > 1:  # uniform numbers among the cumulative weights
            sums = xp.cumsum(weights, 1)
            total = g.slice(sums, 1, categories - 1, 1)
            points = g.reshape(self.uniform(size, weights.dtype), (rows, n)) * total
            found = xp._searchsorted(sums, points, None, True)
            return g.reshape(g.apply("minimum", found, categories - 1), (size,))
        # the n largest of weight / exponential number: the first of as many Poisson processes
        times = -g.apply("log", 1.0 - self.uniform(rows * categories, weights.dtype))
        speeds = weights / g.apply("maximum", g.reshape(times, weights.shape), float(np.finfo(weights.dtype).tiny))
        if n == 1:
            return g.reshape(g.reduce("argmax", speeds, (1,)), (size,))
        return g.reshape(xp.topk(speeds, n)[1], (size,))

    def _randperm(self, size: int, wide: np.dtype, n: int, dtype: Any = None) -> Value:
        return namespace_of(self.graph).argsort(self.uniform(size, FLOAT64))


__all__ = ["STEP", "RandomDraws"]
