"""Reductions over IR values: sums, means, extrema, moments and norms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...shapes import wrap_dims
from ..graph.value import BOOL, INT64, Unsupported, Value
from .elementwise_ops import ElementwiseOps


class Reductions(ElementwiseOps):
    """Reduction primitives."""

    def _dims(self, x: Value, dim: Any) -> tuple[int, ...]:
        return tuple(range(x.ndim)) if dim is None else wrap_dims(dim, x.ndim) if x.ndim else ()

    def _reduce(self, name: str, x: Value, dim: Any, keepdim: bool) -> Value:
        axes = self._dims(x, dim)
        result = self.graph.reduce(name, x, axes)
        if keepdim:
            result = self.graph.reshape(result, tuple(1 if d in axes else n for d, n in enumerate(x.shape)))
        return result

    def sum(self, x: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
        if dtype is not None:
            x = self.graph.cast(x, dtype.numpy)
        elif x.dtype.kind in "biu":
            x = self.graph.cast(x, INT64)
        total = self._reduce("sum", x, dim, keepdim)
        return total if dtype is None else self.graph.cast(total, dtype.numpy)

    def mean(self, x: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
        if dtype is not None:
            x = self.graph.cast(x, dtype.numpy)
        if x.dtype.kind != "f":
            raise Unsupported("the mean of integers")
        count = math.prod(x.shape[d] for d in self._dims(x, dim))
        return self._reduce("sum", x, dim, keepdim) / self.graph.element_count(count, x.dtype)

    def _expand_reduced(self, g: Value, size: tuple[int, ...], dim: Any, keepdim: bool) -> Value:
        if not keepdim and size and dim is not None:
            axes = wrap_dims(dim, len(size))
            g = self.graph.reshape(g, tuple(1 if d in axes else n for d, n in enumerate(size)))
        return self.graph.expand(g, size)

    def amax(self, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
        return self._reduce("max", x, dim, keepdim)

    def amin(self, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
        return self._reduce("min", x, dim, keepdim)

    def _tie_shares(self, x: Value, out: Value, dim: Any = None, keepdim: bool = False, nan: bool = False) -> Value:
        """1 / (number of ties) where an element equals its extremum, 0 elsewhere."""
        g = self.graph
        if dim is not None and not keepdim and x.ndim:
            out = g.reshape(out, tuple(1 if d in self._dims(x, dim) else n for d, n in enumerate(x.shape)))
        tied = g.apply("eq", x, out)
        if nan and x.dtype.kind == "f":
            tied = g.apply("or", tied, g.apply("and", self.isnan(x), self.isnan(out)))
        exact = x.size < 1 << 24  # ones of float32 add up exactly so far
        count = self._reduce("sum", g.cast(tied, x.dtype if exact and x.dtype.kind == "f" else INT64), dim, True)
        return g.cast(tied, x.dtype) / g.cast(count, x.dtype)

    def _max_all(self, x: Value) -> Value:
        return self._reduce("max", x, None, False)

    def _min_all(self, x: Value) -> Value:
        return self._reduce("min", x, None, False)

    def prod(self, x: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
        if dtype is not None:
            x = self.graph.cast(x, dtype.numpy)
        return self._reduce("prod", x, dim, keepdim)

    _prod_all = prod

    def any(self, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
        return self._any_or_all("any", x, dim, keepdim)

    def all(self, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
        return self._any_or_all("all", x, dim, keepdim)

    def _any_or_all(self, name: str, x: Value, dim: Any, keepdim: bool) -> Value:
        if x.dtype == np.uint8 or dim == () or dim == []:
            raise Unsupported(f"{name} of uint8, or over no dimensions")
        return self._reduce(name, x, dim, keepdim)

    def argmax(self, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
        return self._arg_extremum("argmax", x, dim, keepdim)

    def argmin(self, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
        return self._arg_extremum("argmin", x, dim, keepdim)

    def _arg_extremum(self, name: str, x: Value, dim: Any, keepdim: bool) -> Value:
        if x.dtype == BOOL:
            raise Unsupported(f"{name} of bool")
        if dim is None and x.ndim != 1:
            result = self._reduce(name, self.graph.reshape(x, (x.size,)), 0, False)
            return self.graph.reshape(result, (1,) * x.ndim) if keepdim else result
        return self._reduce(name, x, dim, keepdim)

    def _moments(self, x: Value, dim: Any, correction: Any, keepdim: bool) -> tuple[Value, Value]:
        if x.dtype.kind != "f":
            raise Unsupported("the variance of integers")
        axes = self._dims(x, dim)
        count = math.prod(x.shape[d] for d in axes)
        mean = self._reduce("sum", x, axes, True) / self.graph.element_count(count, x.dtype)
        off = x - mean
        freedom = count - (1 if correction is None else correction)
        if freedom <= 0:
            raise Unsupported("a variance of too few elements")
        divisor = self.graph.element_count(freedom, x.dtype) if isinstance(freedom, int) else float(freedom)
        return self._reduce("sum", off * off, axes, keepdim) / divisor, mean

    def var(self, x: Value, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Value:
        return self._moments(x, dim, correction, keepdim)[0]

    def std(self, x: Value, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Value:
        return self.graph.apply("sqrt", self.var(x, dim, correction, keepdim))

    def var_mean(self, x: Value, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
        var, mean = self._moments(x, dim, correction, keepdim)
        return var, mean if keepdim else self.graph.reshape(mean, var.shape)

    def std_mean(self, x: Value, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
        var, mean = self.var_mean(x, dim, correction, keepdim)
        return self.graph.apply("sqrt", var), mean

    def linalg_vector_norm(self, x: Value, ord: Any = 2, dim: Any = None, keepdim: bool = False,
                           dtype: Any = None) -> Value:
        if dtype is not None:
            x = self.graph.cast(x, dtype.numpy)
        if x.dtype.kind != "f":
            raise Unsupported("the norm of integers")
        axes = None if dim == () or dim == [] else dim
        apply = self.graph.apply
        if ord == 2:
            return apply("sqrt", self._reduce("sum", x * x, axes, keepdim))
        size = apply("abs", x)
        if ord == 1:
            return self._reduce("sum", size, axes, keepdim)
        if math.isinf(ord):
            return self._reduce("max" if ord > 0 else "min", size, axes, keepdim)
        if ord == 0:
            return self._reduce("sum", self.graph.cast(apply("ne", x, 0.0), x.dtype), axes, keepdim)
        return apply("pow", self._reduce("sum", apply("pow", size, float(ord)), axes, keepdim), 1 / ord)

    def logsumexp(self, x: Value, dim: Any, keepdim: bool = False) -> Value:
        g = self.graph
        maximum = self._reduce("max", x, dim, True)
        maximum = g.select(self.isinf(maximum), g.constant(0.0, x.dtype), maximum)
        total = self._reduce("sum", g.apply("exp", x - maximum), dim, True)
        result = g.apply("log", total) + maximum
        return result if keepdim else g.reshape(result, self._reduce("max", x, dim, False).shape)


__all__ = ["Reductions"]
