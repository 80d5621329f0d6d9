"""The operators' lines over values: what `xp` is while a declaration writes a graph.

`Namespace(graph)` has the primitives under flambeau's names, in terms of values; any other operator is its own
declared forward, run over this namespace. What values cannot say raises `Unsupported`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...kernels.pooling import pool_output_size
from ...ops.declare import REGISTRY
from ...shapes import infer_size, wrap_dim, wrap_dims
from ..graph.value import BOOL, FLOAT32, INT64, Graph, Unsupported, Value, logical_operand
from ..graph.view_algebra import dense_strides
from . import pooling as pools
from .indexed_kernels import added, taken
from .layout_ops import Moves
from .scans import Scans

#: names whose operation has the same or another name, on values of one dtype
_NAMES = {name: name for name in (
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "copysign", "cos", "cosh", "div",
    "eq", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "fmax", "fmin", "ge", "gt", "le",
    "log", "log10", "log1p", "log2", "lt", "maximum", "minimum", "mul", "ne", "neg", "round", "rsqrt",
    "sigmoid", "sin", "sinh", "sqrt", "sub", "tan", "tanh", "trunc")} | {
    "reciprocal": "recip", "clamp_below": "maximum"}
_ROUNDING = ("ceil", "floor", "round", "trunc")
_ON_FLOATS = ("fmod", "remainder", "pow")


class Namespace(Moves, Scans):
    """`xp` over the values of one graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.within: set[str] = set()  # the operators whose declarations are being run

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = _NAMES.get(name)
        if operation is not None:
            call = self._elementwise(operation)
        else:
            op = REGISTRY.get(name)
            if op is None:
                raise Unsupported(f"the primitive {name}")
            call = self.declared(op)
        setattr(self, name, call)
        return call

    def declared(self, op: Any) -> Callable[..., Any]:
        """What runs an operator's own declaration; one that rests on a primitive of its own name cannot be run."""
        forward, name = op.forward, op.name

        def call(*args: Any, **params: Any) -> Any:
            if name in self.within:
                raise Unsupported(f"the primitive {name}")
            self.within.add(name)
            try:
                return forward(self, *args, **params) if op.takes_xp else forward(*args, **params)
            finally:
                self.within.discard(name)

        return call

    def _elementwise(self, operation: str) -> Callable[..., Value]:
        apply = self.graph.apply
        if operation in _ROUNDING:
            return lambda x: x if x.dtype.kind in "biu" else apply(operation, x)
        return lambda *values: apply(operation, *values)

    # ----- elementwise -----

    def fmod(self, x: Any, y: Any) -> Value:
        return self._float("fmod", x, y)

    def remainder(self, x: Any, y: Any) -> Value:
        return self._float("remainder", x, y)

    def _float(self, operation: str, *values: Any) -> Value:
        if any(isinstance(v, Value) and v.dtype.kind != "f" for v in values):
            raise Unsupported(f"{operation} of integers")
        return self.graph.apply(operation, *values)

    def pow(self, x: Any, y: Any) -> Value:
        if isinstance(x, Value) and not isinstance(y, Value) and not hasattr(y, "dtype"):
            return self.pow_scalar(x, y)
        return self._float("pow", x, y)

    def pow_scalar(self, x: Value, exponent: Any) -> Value:
        apply = self.graph.apply
        if exponent == 1:
            return x
        if exponent == 2:
            return apply("mul", x, x)
        if exponent == 3:
            return apply("mul", apply("mul", x, x), x)
        if x.dtype.kind != "f":
            raise Unsupported("a power of integers")
        if exponent == 0.5:
            return apply("sqrt", x)
        if exponent == -0.5:
            return apply("rsqrt", x)
        if exponent == -1:
            return apply("recip", x)
        if exponent == -2:
            return apply("recip", apply("mul", x, x))
        return apply("pow", x, float(exponent))

    def scalar_pow(self, base: Any, exponent: Value) -> Value:
        if base == 2 and exponent.dtype.kind == "f":
            return self.graph.apply("exp2", exponent)
        return self._float("pow", base, exponent)

    def exponentiate(self, x: Any, y: Any) -> Value:
        return self.pow(x, y)

    def square(self, x: Value) -> Value:
        return self.graph.apply("mul", x, x)

    def where(self, condition: Any, input: Any, other: Any) -> Value:
        return self.graph.select(condition, input, other)

    def fill_masked(self, x: Value, mask: Value, value: Any) -> Value:
        return self.graph.select(mask, value, x)

    def sign(self, x: Value) -> Value:
        if x.dtype.kind != "f":
            raise Unsupported("the sign of integers")
        one = self.graph.select(x > 0, 1.0, self.graph.constant(0.0, x.dtype))
        return self.graph.select(x < 0, -1.0, one)

    sgn = sign

    def isnan(self, x: Value) -> Value:
        return self.graph.apply("ne", x, x)

    def isinf(self, x: Value) -> Value:
        return self.graph.apply("eq", self.graph.apply("abs", x), math.inf)

    def isfinite(self, x: Value) -> Value:
        return self.graph.apply("lt", self.graph.apply("abs", x), math.inf)

    def _truth(self, x: Any) -> Any:
        return self.graph.cast(x, BOOL) if isinstance(x, Value) else logical_operand(x)

    def logical_and(self, x: Any, y: Any) -> Value:
        return self.graph.apply("and", self._truth(x), self._truth(y))

    def logical_or(self, x: Any, y: Any) -> Value:
        return self.graph.apply("or", self._truth(x), self._truth(y))

    def logical_xor(self, x: Any, y: Any) -> Value:
        return self.graph.apply("xor", self._truth(x), self._truth(y))

    def logical_not(self, x: Any) -> Value:
        return self.graph.apply("not", self._truth(x))

    def bitwise_and(self, x: Any, y: Any) -> Value:
        return self.graph.apply("and", x, y)

    def bitwise_or(self, x: Any, y: Any) -> Value:
        return self.graph.apply("or", x, y)

    def bitwise_xor(self, x: Any, y: Any) -> Value:
        return self.graph.apply("xor", x, y)

    def bitwise_not(self, x: Any) -> Value:
        return self.graph.apply("not", x)

    def hypot(self, x: Any, y: Any) -> Value:
        g = self.graph
        x, y = g.operands([x, y])
        if x.dtype == FLOAT32:  # squares of float32 neither overflow nor vanish in float64
            a, b = (g.cast(each, np.dtype(np.float64)) for each in (x, y))
            found = g.cast(g.apply("sqrt", a * a + b * b), FLOAT32)
        else:
            a, b = g.apply("abs", x), g.apply("abs", y)
            larger, smaller = g.apply("maximum", a, b), g.apply("minimum", a, b)
            ratio = smaller / g.select(g.apply("eq", larger, 0), 1, larger)
            found = larger * g.apply("sqrt", 1 + ratio * ratio)
        endless = g.apply("or", g.apply("eq", g.apply("abs", x), math.inf), g.apply("eq", g.apply("abs", y), math.inf))
        return g.select(endless, math.inf, found)

    def logaddexp(self, x: Any, y: Any) -> Value:
        g = self.graph
        top = g.apply("maximum", x, y)
        gap = g.apply("neg", g.apply("abs", g.apply("sub", x, y)))
        same = g.apply("eq", x, y)  # also where both are infinite
        return g.select(same, g.apply("add", top, math.log(2)), g.apply("add", top, g.apply(
            "log1p", g.apply("exp", gap))))

    def lerp(self, input: Value, end: Value, weight: Any) -> Value:
        span = end - input
        if isinstance(weight, (int, float)):
            return input + weight * span if abs(weight) < 0.5 else end - span * (1 - weight)
        return self.graph.select(self.graph.apply("abs", weight) < 0.5, input + weight * span,
                                 end - span * (1 - weight))

    def nan_to_num(self, x: Value, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Value:
        if x.dtype.kind in "biu":
            return x
        if x.dtype.kind != "f":
            raise Unsupported(f"numbers for NaN in {x.dtype}")
        limits = dtypes.finfo(dtypes.of(x.dtype))
        g = self.graph
        values = [float(0.0 if nan is None else nan), float(limits.max if posinf is None else posinf),
                  float(limits.min if neginf is None else neginf)]
        low = g.select(g.apply("eq", x, -math.inf), values[2], x)
        high = g.select(g.apply("eq", x, math.inf), values[1], low)
        return g.select(self.isnan(x), values[0], high)

    def conj(self, x: Value) -> Value:
        return self._real(x)

    real = conj

    def _real(self, x: Value) -> Value:
        if x.dtype.kind == "c":
            raise Unsupported("complex numbers")
        return x

    def is_complex(self, x: Value) -> bool:
        return x.dtype.kind == "c"

    def to(self, x: Value, dtype: Any) -> Value:
        return self.graph.cast(x, getattr(dtype, "numpy", dtype))

    def clone(self, x: Value, *_: Any, **__: Any) -> Value:
        return x

    def contiguous(self, x: Value, *_: Any, **__: Any) -> Value:
        return x

    # ----- filled -----

    def full(self, size: Sequence[int], value: Any, dtype: Any = None) -> Value:
        kind = dtypes.get_default_dtype().numpy if dtype is None else getattr(dtype, "numpy", dtype)
        return self.graph.expand(self.graph.constant(value, kind), tuple(size))

    def zeros(self, size: Sequence[int], dtype: Any = None) -> Value:
        return self.full(size, 0, dtype)

    def full_like(self, x: Value, value: Any, dtype: Any = None) -> Value:
        return self.full(x.shape, value, x.dtype if dtype is None else dtype)

    def zeros_like(self, x: Value, dtype: Any = None) -> Value:
        return self.full_like(x, 0, dtype)

    def ones_like(self, x: Value, dtype: Any = None) -> Value:
        return self.full_like(x, 1, dtype)

    # ----- reductions -----

    def _axes(self, x: Value, dim: Any) -> tuple[int, ...]:
        return tuple(range(x.ndim)) if dim is None else wrap_dims(dim, x.ndim) if x.ndim else ()

    def _reduced(self, name: str, x: Value, dim: Any, keepdim: bool) -> Value:
        axes = self._axes(x, dim)
        found = self.graph.reduce(name, x, axes)
        if keepdim:
            found = self.graph.reshape(found, tuple(1 if d in axes else n for d, n in enumerate(x.shape)))
        return found

    def sum(self, x: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
        if dtype is not None:
            x = self.graph.cast(x, dtype.numpy)
        elif x.dtype.kind in "biu":
            x = self.graph.cast(x, INT64)
        found = self._reduced("sum", x, dim, keepdim)
        return found if dtype is None else self.graph.cast(found, dtype.numpy)

    _sum_all = sum

    def mean(self, x: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
        if dtype is not None:
            x = self.graph.cast(x, dtype.numpy)
        if x.dtype.kind != "f":
            raise Unsupported("the mean of integers")
        count = math.prod(x.shape[d] for d in self._axes(x, dim))
        return self._reduced("sum", x, dim, keepdim) / self.graph.element_count(count, x.dtype)

    _mean_all = mean

    def sum_to_size(self, x: Value, size: tuple[int, ...]) -> Value:
        size = tuple(size)
        if x.shape == size:
            return x
        lead = x.ndim - len(size)
        axes = (*range(lead), *(i + lead for i, s in enumerate(size) if s == 1 and x.shape[i + lead] != 1))
        return self.graph.reshape(self._reduced("sum", x, axes, True) if axes else x, size)

    def _expand_reduced(self, g: Value, size: tuple[int, ...], dim: Any, keepdim: bool) -> Value:
        if not keepdim and size and dim is not None:
            axes = wrap_dims(dim, len(size))
            g = self.graph.reshape(g, tuple(1 if d in axes else n for d, n in enumerate(size)))
        return self.graph.expand(g, size)

    def amax(self, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
        return self._reduced("max", x, dim, keepdim)

    def amin(self, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
        return self._reduced("min", x, dim, keepdim)

    def _tie_shares(self, x: Value, out: Value, dim: Any = None, keepdim: bool = False, nan: bool = False) -> Value:
        """1 / (number of ties) where an element equals its extremum, 0 elsewhere."""
        g = self.graph
        if dim is not None and not keepdim and x.ndim:
            out = g.reshape(out, tuple(1 if d in self._axes(x, dim) else n for d, n in enumerate(x.shape)))
        tied = g.apply("eq", x, out)
        if nan and x.dtype.kind == "f":
            tied = g.apply("or", tied, g.apply("and", self.isnan(x), self.isnan(out)))
        exact = x.size < 1 << 24  # ones of float32 add up exactly so far
        count = self._reduced("sum", g.cast(tied, x.dtype if exact and x.dtype.kind == "f" else INT64), dim, True)
        return g.cast(tied, x.dtype) / g.cast(count, x.dtype)

    def check_probabilities(self, x: Value) -> None:
        """Let everything depend on elements being in [0, 1]."""
        g = self.graph
        inside = g.apply("and", g.apply("ge", x, 0.0), g.apply("le", x, 1.0))
        condition = (g.reduce("all", inside, range(x.ndim)) if x.ndim else inside, True)
        if condition not in g.conditions:
            g.conditions.append(condition)

    def _max_all(self, x: Value) -> Value:
        return self._reduced("max", x, None, False)

    def _min_all(self, x: Value) -> Value:
        return self._reduced("min", x, None, False)

    def prod(self, x: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
        if dtype is not None:
            x = self.graph.cast(x, dtype.numpy)
        return self._reduced("prod", x, dim, keepdim)

    _prod_all = prod

    def any(self, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
        return self._question("any", x, dim, keepdim)

    def all(self, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
        return self._question("all", x, dim, keepdim)

    def _question(self, name: str, x: Value, dim: Any, keepdim: bool) -> Value:
        if x.dtype == np.uint8 or dim == () or dim == []:
            raise Unsupported(f"{name} of bytes, or over no dimensions")
        return self._reduced(name, x, dim, keepdim)

    def argmax(self, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
        return self._place("argmax", x, dim, keepdim)

    def argmin(self, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
        return self._place("argmin", x, dim, keepdim)

    def _place(self, name: str, x: Value, dim: Any, keepdim: bool) -> Value:
        if x.dtype == BOOL:
            raise Unsupported(f"{name} of logical_operand values")
        if dim is None and x.ndim != 1:
            found = self._reduced(name, self.graph.reshape(x, (x.size,)), 0, False)
            return self.graph.reshape(found, (1,) * x.ndim) if keepdim else found
        return self._reduced(name, x, dim, keepdim)

    def _moments(self, x: Value, dim: Any, correction: Any, keepdim: bool) -> tuple[Value, Value]:
        if x.dtype.kind != "f":
            raise Unsupported("the variance of integers")
        axes = self._axes(x, dim)
        count = math.prod(x.shape[d] for d in axes)
        mean = self._reduced("sum", x, axes, True) / self.graph.element_count(count, x.dtype)
        off = x - mean
        freedom = count - (1 if correction is None else correction)
        if freedom <= 0:
            raise Unsupported("a variance of too few elements")
        divisor = self.graph.element_count(freedom, x.dtype) if isinstance(freedom, int) else float(freedom)
        return self._reduced("sum", off * off, axes, keepdim) / divisor, mean

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
            return apply("sqrt", self._reduced("sum", x * x, axes, keepdim))
        size = apply("abs", x)
        if ord == 1:
            return self._reduced("sum", size, axes, keepdim)
        if math.isinf(ord):
            return self._reduced("max" if ord > 0 else "min", size, axes, keepdim)
        if ord == 0:
            return self._reduced("sum", self.graph.cast(apply("ne", x, 0.0), x.dtype), axes, keepdim)
        return apply("pow", self._reduced("sum", apply("pow", size, float(ord)), axes, keepdim), 1 / ord)

    def logsumexp(self, x: Value, dim: Any, keepdim: bool = False) -> Value:
        g = self.graph
        top = self._reduced("max", x, dim, True)
        top = g.select(self.isinf(top), g.constant(0.0, x.dtype), top)
        total = self._reduced("sum", g.apply("exp", x - top), dim, True)
        found = g.apply("log", total) + top
        return found if keepdim else g.reshape(found, self._reduced("max", x, dim, False).shape)

    # ----- softmax and its kin -----

    def softmax(self, x: Value, dim: int, dtype: Any = None) -> Value:
        if dtype is not None:
            x = self.graph.cast(x, dtype.numpy)
        e = self.graph.apply("exp", x - self._reduced("max", x, dim, True))
        return e / self._reduced("sum", e, dim, True)

    def safe_softmax(self, x: Value, dim: int) -> Value:
        g = self.graph
        top = self._reduced("max", x, dim, True)
        nothing = g.apply("eq", top, -math.inf)
        e = g.apply("exp", x - g.select(nothing, 0.0, top))
        return e / g.select(nothing, 1.0, self._reduced("sum", e, dim, True))

    def log_softmax(self, x: Value, dim: int, dtype: Any = None) -> Value:
        if dtype is not None:
            x = self.graph.cast(x, dtype.numpy)
        off = x - self._reduced("max", x, dim, True)
        return off - self.graph.apply("log", self._reduced("sum", self.graph.apply("exp", off), dim, True))

    def _softmax_backward(self, g: Value, out: Value, dim: int) -> Value:
        weighted = g * out
        return weighted - out * self._reduced("sum", weighted, dim, True)

    def _log_softmax_backward(self, g: Value, out: Value, dim: int) -> Value:
        return g - self.graph.apply("exp", out) * self._reduced("sum", g, dim, True)

    def layer_norm(self, x: Value, weight: Any, bias: Any, normalized_shape: Any, eps: float, saved: Any) -> Value:
        dims = tuple(range(x.ndim - len(normalized_shape), x.ndim))
        y, mean, rstd = self._standardized(x, dims, eps)
        saved[:] = (self.graph.reshape(mean, x.shape[:dims[0]]), self.graph.reshape(rstd, x.shape[:dims[0]]))
        if weight is not None:
            y = y * weight
        return y if bias is None else y + bias

    def _standardized(self, x: Value, dims: Any, eps: float) -> tuple[Value, Value, Value]:
        mean = self.mean(x, dims, True)
        d = x - mean
        rstd = self.graph.apply("rsqrt", self.mean(d * d, dims, True) + eps)
        return d * rstd, mean, rstd

    def batch_norm(self, x: Value, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
                   eps: float, saved: Any) -> Value:
        g = self.graph
        dims = (0, *range(2, x.ndim))
        across = (1, -1, *(1 for _ in dims[1:]))
        if training:
            mean = self.mean(x, dims)
            d = x - self.reshape(mean, across)
            var = self.mean(d * d, dims)
            rstd = g.apply("rsqrt", var + eps)
            saved[:] = (mean, rstd, var)
        else:
            mean, rstd = running_mean, g.apply("rsqrt", running_var + eps)
            d = x - self.reshape(mean, across)
            saved[:] = (mean, rstd)
        y = d * self.reshape(rstd, across)
        if weight is not None:
            y = y * self.reshape(weight, across)
        return y if bias is None else y + self.reshape(bias, across)

    def group_norm(self, x: Value, weight: Any, bias: Any, group: int, eps: float, saved: Any) -> Value:
        n, c = x.shape[:2]
        y, mean, rstd = self._standardized(self.reshape(x, (n * group, -1)), (1,), eps)
        saved[:] = (self.reshape(mean, (n * group,)), self.reshape(rstd, (n * group,)))
        y = self.reshape(y, x.shape)
        across = (1, c, *(1 for _ in x.shape[2:]))
        if weight is not None:
            y = y * self.reshape(weight, across)
        return y if bias is None else y + self.reshape(bias, across)

    def attend(self, query: Value, key: Value, value: Value, attn_mask: Any, is_causal: bool, scale: float,
               saved: Any) -> Value:
        scores = self.matmul(query, self.transpose(key, -2, -1)) * scale
        if attn_mask is not None:
            scores = scores + attn_mask
        if is_causal:
            scores = self.mask_later(scores, -math.inf)
        weights = self.safe_softmax(scores, -1)
        saved[:] = (weights,)
        return self.matmul(weights, value)

    def _attention_backward(self, g: Value, query: Value, key: Value, value: Value, attn_mask: Any = None, *,
                            is_causal: bool, scale: float, saved: Any, needs: Any) -> Any:
        weights = saved[0]
        by_value = self.matmul(self.transpose(weights, -2, -1), g) if needs[2] else None
        if not (needs[0] or needs[1]):
            return None, None, by_value
        slope = self._softmax_backward(self.matmul(g, self.transpose(value, -2, -1)), weights, -1) * scale
        return (self.matmul(slope, key) if needs[0] else None,
                self.matmul(self.transpose(slope, -2, -1), query) if needs[1] else None, by_value)

    # ----- triangles -----

    def _below(self, shape: tuple[int, ...], diagonal: int) -> Value:
        if len(shape) < 2:
            raise Unsupported("a triangle of fewer than two dimensions")
        rows = self.graph.constant(np.arange(shape[-2]).reshape(-1, 1))
        columns = self.graph.constant(np.arange(-diagonal, shape[-1] - diagonal))
        return self.graph.expand(rows, shape) >= self.graph.expand(columns, shape)

    def tril(self, x: Value, diagonal: int = 0) -> Value:
        return self.graph.select(self._below(x.shape, diagonal), x, self.graph.constant(0, x.dtype))

    def triu(self, x: Value, diagonal: int = 0) -> Value:
        return self.graph.select(self._below(x.shape, diagonal - 1), self.graph.constant(0, x.dtype), x)

    def mask_later(self, x: Value, value: Any) -> Value:
        return self.graph.select(self._below(x.shape, 0), x, self.graph.constant(value, x.dtype))

    # ----- products -----

    def mm(self, x: Value, y: Value) -> Value:
        g = self.graph
        if x.ndim == 1:
            return self.dot(x, y) if y.ndim == 1 else g.reshape(g.matmul(g.unsqueeze(x, 0), y), y.shape[1:])
        return self.mv(x, y) if y.ndim == 1 else g.matmul(x, y)

    def bmm(self, x: Value, y: Value) -> Value:
        return self.graph.matmul(x, y)

    def matmul(self, x: Value, y: Value) -> Value:
        if x.ndim == 1 or y.ndim == 1:
            raise Unsupported("products of vectors here")
        return self.graph.matmul(x, y)

    def mv(self, x: Value, y: Value) -> Value:
        g = self.graph
        return g.reshape(g.matmul(x, g.unsqueeze(y, 1)), x.shape[:1])

    def dot(self, x: Value, y: Value) -> Value:
        return self._reduced("sum", x * y, None, False)

    def _scaled(self, x: Value, factor: Any) -> Value:
        return x if factor == 1 else x * factor

    def add_product(self, input: Value, x: Value, y: Value, beta: Any = 1, alpha: Any = 1) -> Value:
        product = self.graph.matmul(x, y) if y.ndim > 1 else self.mv(x, y)
        product = self._scaled(product, alpha)
        return product if beta == 0 else self._scaled(input, beta) + product

    def conv_output(self, image: Value, weight: Value, geometry: Any) -> Value:
        shape = (image.shape[0], weight.shape[0], *geometry.positions)
        return self.graph.convolve("forward", image, weight, shape, *geometry[3:])

    def conv_image(self, output: Value, weight: Value, geometry: Any) -> Value:
        shape = (output.shape[0], weight.shape[1] * geometry.groups, *geometry.spatial)
        return self.graph.convolve("image", output, weight, shape, *geometry[3:])

    def conv_weight(self, output: Value, image: Value, geometry: Any) -> Value:
        shape = (output.shape[1], image.shape[1] // geometry.groups, *geometry.kernel)
        return self.graph.convolve("weight", output, image, shape, *geometry[3:])

    def convolve(self, x: Value, weight: Value, bias: Any, geometry: Any, transposed: bool) -> Value:
        out = (self.conv_image if transposed else self.conv_output)(x, weight, geometry)
        return out if bias is None else out + self.reshape(bias, (1, -1, *(1 for _ in geometry.spatial)))

    # ----- views -----

    def reshape(self, x: Value, size: Any) -> Value:
        return self.graph.reshape(x, infer_size(tuple(size), x.size))

    view = reshaped = reshape

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
        places = range(*slice(start, end, step).indices(x.shape[axis]))
        return self.graph.slice(x, axis, places.start, len(places), step)

    def split_with_sizes(self, x: Value, split_sizes: Any, dim: int = 0) -> list[Value]:
        axis, start, found = wrap_dim(dim, x.ndim), 0, []
        for length in split_sizes:
            found.append(self.graph.slice(x, axis, start, length))
            start += length
        return found

    def split(self, x: Value, split_size: int, dim: int = 0) -> list[Value]:
        length = x.shape[wrap_dim(dim, x.ndim)]
        return self.split_with_sizes(x, [min(split_size, length - i) for i in range(0, length, split_size)], dim)

    def unbind(self, x: Value, dim: int = 0) -> list[Value]:
        axis = wrap_dim(dim, x.ndim)
        return [self.graph.select_index(x, axis, i) for i in range(x.shape[axis])]

    # ----- joining -----

    def cat(self, *values: Any, dim: int = 0) -> Value:
        several = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        kept = [v for v in several if v.shape != (0,)]
        if not kept:
            raise Unsupported("nothing joined")
        return self.graph.cat(kept, wrap_dim(dim, kept[0].ndim))

    def stack(self, *values: Any, dim: int = 0) -> Value:
        several = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        axis = wrap_dim(dim, several[0].ndim + 1)
        return self.graph.cat([self.graph.unsqueeze(v, axis) for v in several], axis)

    def _place_of(self, size: tuple[int, ...], key: Any) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """The shape, strides and offset of a part of a dense array, by slices and integers."""
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
                places = range(*each.indices(size[dim]))
                shape.append(len(places))
                strides.append(rows[dim] * places.step)
                offset += places.start * rows[dim] if len(places) else 0
                dim += 1
            elif isinstance(each, int) and not isinstance(each, bool):
                offset += each % size[dim] * rows[dim]
                dim += 1
            else:
                raise Unsupported(f"a part by {type(each).__name__}")
        return (*shape, *size[dim:]), (*strides, *rows[dim:]), offset

    def embed(self, x: Value, size: Any, key: Any) -> Value:
        size = tuple(size)
        shape, strides, offset = self._place_of(size, key)
        if any(s < 0 for s in strides):
            raise Unsupported("a part seen backwards")
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
        _, strides, offset = self._place_of(tuple(shape), tuple(key))
        return self.graph.assemble(shape, self.graph.constant(value, x.dtype), [cut], [(strides, offset)])

    # ----- pooling -----

    def max_pool(self, x: Value, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
                 saved: Any) -> Value:
        spatial = x.shape[x.ndim - len(kernel_size):]
        sizes = pool_output_size(spatial, kernel_size, stride, padding, dilation, ceil_mode)
        values, index = pools.maxima(x, pools.windows_of(spatial, sizes, kernel_size, stride, padding, dilation))
        if saved is not None:
            saved[:] = (index,)
        return values

    def adaptive_max_pool(self, x: Value, output_size: Any, saved: Any) -> Value:
        values, index = pools.maxima(x, pools.even_windows(x.shape[x.ndim - len(output_size):], output_size))
        saved[:] = (index,)
        return values

    def scatter_planes(self, g: Value, index: Value, spatial: Any, overlapping: bool) -> Value:
        return pools.spread(g, index, tuple(spatial))

    def avg_pool(self, x: Value, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
                 count_include_pad: bool, divisor_override: Any) -> Value:
        spatial = x.shape[x.ndim - len(kernel_size):]
        sizes = pool_output_size(spatial, kernel_size, stride, padding, (1,) * len(kernel_size), ceil_mode)
        windows = pools.windows_of(spatial, sizes, kernel_size, stride, padding, None, count_include_pad)
        return pools.means(x, windows, divisor_override or 0)

    def avg_pool_backward(self, g: Value, spatial: Any, kernel_size: Any, stride: Any, padding: Any,
                          count_include_pad: bool, divisor_override: Any) -> Value:
        windows = pools.windows_of(spatial, g.shape[g.ndim - len(kernel_size):], kernel_size, stride, padding, None,
                                   count_include_pad)
        return pools.shares(g, tuple(spatial), windows, divisor_override or 0)

    def adaptive_avg_pool(self, x: Value, output_size: Any) -> Value:
        return pools.means(x, pools.even_windows(x.shape[x.ndim - len(output_size):], output_size))

    def adaptive_avg_pool_backward(self, g: Value, spatial: Any) -> Value:
        return pools.shares(g, tuple(spatial), pools.even_windows(spatial, g.shape[g.ndim - len(spatial):]))

    # ----- by index -----

    def _rows(self, x: Value, index: Value) -> Value:
        self.requires_range(index, x.shape[0])
        width = math.prod(x.shape[1:])
        found = taken(self.graph.reshape(x, (x.shape[0], width)), self.graph.reshape(index, (index.size, 1)),
                      (index.size, width), 0)
        return self.graph.reshape(found, (*index.shape, *x.shape[1:]))

    def take_rows(self, weight: Value, indices: Value) -> Value:
        return self._rows(weight, self._index(indices))

    def _index(self, index: Any) -> Value:
        if not isinstance(index, Value) or index.dtype.kind not in "iu" or not index.size:
            raise Unsupported("an index of this kind")
        return index

    def _counting(self, rows: Value, indices: Value, padding_idx: int, scale_grad_by_freq: bool) -> Value:
        """Rows, with nothing where the index is `padding_idx`."""
        if scale_grad_by_freq:
            raise Unsupported("gradients by frequency")
        if padding_idx < 0:
            return rows
        kept = self.graph.reshape(self.graph.apply("ne", indices, padding_idx), (*indices.shape, *(
            1 for _ in rows.shape[indices.ndim:])))
        return self.graph.select(kept, rows, self.graph.constant(0, rows.dtype))

    def take_weighted_rows(self, x: Value, indices: Value, padding_idx: int, scale_grad_by_freq: bool) -> Value:
        return self._counting(self._rows(x, self._index(indices)), indices, padding_idx, scale_grad_by_freq)

    def add_rows(self, g: Value, indices: Value, rows: int, padding_idx: int, scale_grad_by_freq: bool) -> Value:
        index = self._index(indices)
        self.requires_range(index, rows)
        values = self._counting(g, index, padding_idx, scale_grad_by_freq)
        rest = g.shape[index.ndim:]
        width = math.prod(rest)
        found = added(self.graph.copy(self.graph.reshape(values, (index.size, width))),
                      self.graph.reshape(index, (index.size, 1)), (rows, width), 0)
        return self.graph.reshape(found, (rows, *rest))

    def gather_along(self, x: Value, index: Value, dim: int) -> Value:
        axis = wrap_dim(dim, max(x.ndim, 1))
        self._index(index)
        if not x.ndim or index.ndim != x.ndim:
            raise Unsupported("a gather of no dimensions")
        self.requires_range(index, x.shape[axis])
        part = x
        for d, n in enumerate(index.shape):
            if d != axis:
                part = self.graph.slice(part, d, 0, n)
        return taken(part, index, index.shape, axis)

    def scatter_added(self, x: Value, index: Value, src: Value, dim: int) -> Value:
        axis = wrap_dim(dim, max(x.ndim, 1))
        self._index(index)
        if not x.ndim or any(n != m for d, (n, m) in enumerate(zip(index.shape, x.shape, strict=True)) if d != axis):
            raise Unsupported("a scatter into a part")
        self.requires_range(index, x.shape[axis])
        part = src
        for d, n in enumerate(index.shape):
            part = self.graph.slice(part, d, 0, n)
        return x + added(part, index, x.shape, axis)

    # ----- classes -----

    def _classes(self, x: Value, target: Value) -> tuple[Value, int]:
        """Whether each class of each row is the one that is meant."""
        axis = 1 if x.ndim > 1 else 0
        across = (-1, *(1 for _ in x.shape[axis + 1:]))
        numbers = self.graph.reshape(self.graph.constant(np.arange(x.shape[axis])), (x.shape[axis], *across[1:]))
        meant = self.graph.unsqueeze(target, axis) if x.ndim > 1 else self.graph.reshape(target, (1,))
        return self.graph.apply("eq", self.graph.expand(numbers, x.shape), self.graph.expand(meant, x.shape)), axis

    def _counted(self, meant: Value, axis: int, target: Value, weight: Any, ignore_index: int, dtype: Any) -> Value:
        """What each target counts: nothing if it is ignored."""
        graph = self.graph
        kept = graph.apply("ne", target, ignore_index)
        if weight is None:
            return graph.cast(kept, dtype)
        across = (-1, *(1 for _ in meant.shape[axis + 1:]))
        zero = graph.constant(0, weight.dtype)
        named = self._reduced("sum", graph.select(meant, graph.expand(self.reshape(weight, across), meant.shape), zero),
                              axis, False)
        return graph.select(kept, graph.reshape(named, target.shape), zero)

    def requires_range(self, index: Value, count: int, but: int | None = None) -> None:
        """Let everything depend on indices being such, `but` apart."""
        graph = self.graph
        if not index.size:
            return
        wrong = graph.apply("or", graph.apply("lt", index, 0), graph.apply("ge", index, count))
        if but is not None:
            wrong = graph.apply("and", wrong, graph.apply("ne", index, but))
        condition = (graph.reduce("any", wrong, range(wrong.ndim)) if wrong.ndim else wrong, False)
        if condition not in graph.conditions:
            graph.conditions.append(condition)

    def pick_classes(self, x: Value, target: Value, weight: Any, reduction: str, ignore_index: int) -> Value:
        self.requires_range(target, x.shape[1 if x.ndim > 1 else 0], ignore_index)
        meant, axis = self._classes(x, target)
        counts = self._counted(meant, axis, target, weight, ignore_index, x.dtype)
        zero = self.graph.constant(0, x.dtype)
        loss = self.graph.reshape(-self._reduced("sum", self.graph.select(meant, x, zero), axis, False), target.shape)
        if weight is not None:
            loss = loss * counts
        loss = self.graph.select(self.graph.apply("ne", target, ignore_index), loss, zero)
        if reduction == "none":
            return loss
        total = self._reduced("sum", loss, None, False)
        return total if reduction == "sum" else total / self._reduced("sum", counts, None, False)

    def place_classes(self, g: Value, target: Value, weight: Any, size: Any, reduction: str,
                      ignore_index: int) -> Value:
        graph = self.graph
        self.requires_range(target, size[1 if len(size) > 1 else 0], ignore_index)
        probe = graph.expand(graph.constant(0, g.dtype), tuple(size))
        meant, axis = self._classes(probe, target)
        counts = self._counted(meant, axis, target, weight, ignore_index, g.dtype)
        value = -g
        if reduction == "mean":
            value = value / self._reduced("sum", counts, None, False)
        if weight is not None:
            value = value * counts
        value = graph.select(graph.apply("ne", target, ignore_index), value, graph.constant(0, g.dtype))
        value = graph.expand(value, target.shape)
        if probe.ndim > 1:
            value = graph.unsqueeze(value, axis)
        else:
            value = graph.reshape(value, (1,))
        return graph.select(meant, graph.expand(value, tuple(size)), graph.constant(0, g.dtype))


def lowered(graph: Graph, op: Any, inputs: Sequence[Any], params: dict[str, Any]) -> list[Value]:
    """What an operator's declaration makes of values (numbers and None where it takes them).

    Raises:
        Unsupported: values cannot say it.
    """
    if op.name in ("eq", "ne"):  # values are compared by identity
        return [graph.apply(op.name, *inputs)]
    try:
        found = namespace_of(graph).declared(op)(*inputs, **params)
    except (AttributeError, TypeError, ValueError, IndexError, RuntimeError) as error:
        # a formula that asks of an array what a value has not
        raise Unsupported(f"{op.name}: {error}") from error
    several = list(found) if isinstance(found, (tuple, list)) else [found]
    for value in several:
        if not isinstance(value, Value):
            raise Unsupported(f"{op.name} gives a {type(value).__name__}")
    return several



def namespace_of(graph: Graph) -> Namespace:
    """The graph's namespace."""
    found = graph.__dict__.get("namespace")
    if found is None:
        found = graph.__dict__["namespace"] = Namespace(graph)
    return found


__all__ = ["FLOAT32", "Namespace", "lowered", "namespace_of"]
