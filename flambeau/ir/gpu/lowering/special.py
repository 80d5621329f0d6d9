"""Special functions over IR values: the formulas of `kernels.special`, traced in float64.

The functions compute with NumPy's interface. Given `Traced` values instead of arrays they build expressions: a piece of
a piecewise function is computed everywhere, and selected where its mask holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ...graph.value import BOOL, Graph, Unsupported, Value
from ..device_kernels import device_kernel

FLOAT64 = np.dtype(np.float64)
#: NumPy's functions, and the operations of the IR
_OPERATIONS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "negative": "neg",
    "absolute": "abs", "fabs": "abs", "minimum": "minimum", "maximum": "maximum", "sqrt": "sqrt", "exp": "exp",
    "expm1": "expm1", "log": "log", "log1p": "log1p", "sin": "sin", "cos": "cos", "tan": "tan", "arccos": "acos",
    "floor": "floor", "ceil": "ceil", "rint": "round", "power": "pow", "copysign": "copysign", "remainder": "remainder",
    "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq", "not_equal": "ne",
    "logical_and": "and", "logical_or": "or", "logical_not": "not", "bitwise_and": "and", "bitwise_or": "or",
    "invert": "not",
}
_COUNT = 1 << 40


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """An IR value with the interface of an array, as far as special functions use it.

    Args:
        value: float64 or bool.
    """

    def __init__(self, value: Value) -> None:
        self.value = value

    @property
    def dtype(self) -> np.dtype:
        """Of the elements."""
        return self.value.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array."""
        return self.value.shape

    @property
    def size(self) -> int:
        """More than any mask has: no piece is known to hold everywhere."""
        return _COUNT

    @property
    def _graph(self) -> Graph:
        return self.value.graph

    def _of(self, x: Any, dtype: np.dtype) -> Value:
        if isinstance(x, Traced):
            return x.value
        return self._graph.constant(np.asarray(x, dtype)[()], dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        name = ufunc.__name__
        if method != "__call__" or kwargs:
            raise Unsupported(f"{name} of a special function")
        g = self._graph
        if name in ("isnan", "isinf", "isfinite", "signbit"):
            [x] = (self._of(each, FLOAT64) for each in inputs)
            if name == "isnan":
                return Traced(g.apply("ne", x, x))
            if name == "signbit":
                return Traced(g.apply("lt", g.apply("copysign", g.constant(1.0, FLOAT64), x), 0.0))
            return Traced(g.apply("eq" if name == "isinf" else "lt", g.apply("abs", x), np.inf))
        op = _OPERATIONS.get(name)
        if op is None:
            raise Unsupported(f"{name} of a special function")
        dtype = next(each.dtype for each in inputs if isinstance(each, Traced))
        result = Traced(g.apply(op, *[self._of(each, dtype) for each in inputs]))
        if out is not None:
            out[0].value = result.value
            return out[0]
        return result

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name, g = function.__name__, self._graph
        if name == "where":
            condition, x, y = args
            return Traced(g.select(condition.value, self._of(x, FLOAT64), self._of(y, FLOAT64)))
        if name in ("zeros_like", "ones_like", "empty_like", "full_like"):
            number = args[1] if name == "full_like" else float(name == "ones_like")
            return Traced(g.expand(g.constant(float(number), FLOAT64), args[0].shape))
        if name in ("round", "around"):
            return Traced(g.apply("round", args[0].value))
        if name == "count_nonzero":
            return 1
        if name == "broadcast_arrays":
            return list(args)
        raise Unsupported(f"{name} of a special function")

    def copy(self) -> Traced:
        """An array that is written to for itself."""
        return Traced(self.value)

    def astype(self, dtype: Any) -> Traced:
        """Another dtype, or the rounding to it."""
        return Traced(self._graph.cast(self.value, np.dtype(dtype)))

    def any(self) -> bool:
        """Whether a piece may hold somewhere."""
        return True

    def all(self) -> bool:
        """Whether it is known to hold everywhere."""
        return False

    def __getitem__(self, mask: Any) -> Traced:
        if isinstance(mask, Traced) and mask.dtype == BOOL:
            return self.copy()  # computed everywhere
        raise Unsupported("an index in a special function")

    def __setitem__(self, mask: Any, value: Any) -> None:
        if not isinstance(mask, Traced) or mask.dtype != BOOL:
            raise Unsupported("an index in a special function")
        self.value = self._graph.select(mask.value, self._of(value, self.dtype), self.value)


#: primitives, and the modules of `kernels.special` with their functions
_MODULES = {
    "bessel": ("i0", "i0e", "i1", "i1e"), "bessel_jy": ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"),
    "bessel_k": ("bessel_k0", "bessel_k1", "bessel_k0e", "bessel_k1e"), "error": ("erfcx", "log_ndtr", "ndtri"),
    "airy": ("airy_ai",), "spherical_bessel": ("spherical_bessel_j0",), "zeta": ("zeta",),
    "reparameterization": ("standard_gamma_grad",),
}
_SPECIAL = {name: module for module, names in _MODULES.items() for name in names}


def _traced(function: Callable[..., Any], values: Sequence[Value], graph: Graph) -> Value:
    """A function of values, computed in float64; narrower floats are widened."""
    dtype = values[0].dtype
    if dtype.kind not in "fV":
        raise Unsupported(f"a special function of {dtype}")
    shape, same = graph.broadcast(values)
    made = function(*[Traced(graph.expand(graph.cast(each, FLOAT64), shape)) for each in same])
    return graph.cast(made.value, np.dtype(np.float32) if dtype.kind == "V" or dtype.itemsize < 4 else dtype)


_CHEBYSHEV = tuple(f"chebyshev_polynomial_{kind}" for kind in "tuvw")
#: orthogonal polynomials of x and a degree
_POLYNOMIALS = (*_CHEBYSHEV, *(f"shifted_{name}" for name in _CHEBYSHEV), "hermite_polynomial_h",
                "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p")


class DeviceSpecial:
    """Primitives of special functions; those of `_SPECIAL` and `_POLYNOMIALS` are set below."""

    graph: Graph

    def _map(self, function: str, values: Sequence[Any], dtypes: Sequence[np.dtype] = (), **params: Any) -> list[Value]:
        """The results of a kernel of `codegen.gpu.maps`, by default one of the first value's dtype."""
        shape, operands = self.graph.broadcast(self.graph.operands(values))
        return device_kernel("map", operands, [(shape, each) for each in dtypes or [operands[0].dtype]],
                             function=function, **params)

    def gcd(self, x: Any, y: Any) -> Value:
        return self._map("gcd", [x, y])[0]

    def lcm(self, x: Any, y: Any) -> Value:
        g = self.graph
        x, y = g.operands([x, y])
        shape, (x, y) = g.broadcast([x, y])
        divisor = self.gcd(x, y)
        found = g.apply("mul", g.make("div", (x, divisor), None, shape, x.dtype), y)
        return g.apply("abs", found) if found.dtype.kind == "i" else found

    def bitwise_left_shift(self, x: Any, y: Any) -> Value:
        return self._map("shift_left", [x, y])[0]

    def bitwise_right_shift(self, x: Any, y: Any) -> Value:
        return self._map("shift_right", [x, y])[0]

    def nextafter(self, x: Value, y: Value) -> Value:
        shape, operands = self.graph.broadcast([x, y])
        if x.dtype != y.dtype:
            raise Unsupported("floats of several dtypes")
        return device_kernel("map", operands, [(shape, x.dtype)], function="nextafter")[0]

    def frexp(self, x: Value) -> tuple[Value, Value]:
        wide = self.graph.cast(x, np.dtype(np.float32)) if x.dtype.itemsize < 4 else x
        mantissa, exponent = self._map("frexp", [wide], [wide.dtype, np.dtype(np.int32)])
        return self.graph.cast(mantissa, x.dtype), exponent

    def _special(self, name: str, values: Sequence[Any]) -> Value:
        module = import_module(f"....kernels.special.{_SPECIAL[name]}", __package__)
        return _traced(getattr(module, name), [self._operand(x, values) for x in values], self.graph)

    def _operand(self, x: Any, values: Sequence[Any]) -> Value:
        if isinstance(x, Value):
            return x
        return self.graph.constant(float(x), next(each.dtype for each in values if isinstance(each, Value)))

    def polygamma(self, n: int, x: Value) -> Value:
        from ....kernels.special.zeta import polygamma_scale, trigamma, zeta

        if n < 1:
            raise Unsupported("a polygamma function of order 0")
        if n == 1:
            return _traced(trigamma, [x], self.graph)
        order = self.graph.constant(n + 1.0, FLOAT64)
        scale = polygamma_scale(n)
        found = _traced(lambda s, z: scale * zeta(s, z), [order, self.graph.cast(x, FLOAT64)], self.graph)
        return self.graph.cast(found, x.dtype)


def _method(name: str) -> Callable[..., Value]:
    def primitive(self: DeviceSpecial, *values: Any) -> Value:
        return self._special(name, values)

    primitive.__name__ = name
    return primitive


def _polynomial(name: str) -> Callable[..., Value]:
    def primitive(self: DeviceSpecial, x: Any, n: Any) -> Value:
        return self._map("polynomial", [x, n], of=name)[0]

    primitive.__name__ = name
    return primitive


for _name in _SPECIAL:
    setattr(DeviceSpecial, _name, _method(_name))
for _name in _POLYNOMIALS:
    setattr(DeviceSpecial, _name, _polynomial(_name))

__all__ = ["DeviceSpecial", "Traced"]
