"""Special functions over IR values: the formulas of `kernels.special`, traced in float64.

The functions compute with NumPy's interface, which `Traced` values have, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ....codegen.gpu.maps.traced import Traced
from ...graph.value import Graph, Unsupported, Value
from ..device_kernels import device_kernel

FLOAT64 = np.dtype(np.float64)
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
    made = function(*[Traced(graph.expand(graph.cast(each, FLOAT64), shape), graph) for each in same])
    value = graph.expand(made.value, shape)
    return graph.cast(value, np.dtype(np.float32) if dtype.kind == "V" or dtype.itemsize < 4 else dtype)


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

    def _incomplete_gamma(self, a: Any, x: Any, upper: bool) -> Value:
        a, x = self.graph.operands([a, x])
        wide = [self.graph.cast(each, FLOAT64) for each in (a, x)]
        return self.graph.cast(self._map("incomplete_gamma", wide, upper=upper)[0], a.dtype)

    def gammainc(self, a: Any, x: Any) -> Value:
        return self._incomplete_gamma(a, x, False)

    def gammaincc(self, a: Any, x: Any) -> Value:
        return self._incomplete_gamma(a, x, True)

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
