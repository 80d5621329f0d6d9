"""Records of the elementwise operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tests.ops.spec import Make, Sample, record, sample

Samples = Callable[[Make], Iterable[Sample]]


def over(low: float, high: float, **kwargs: Any) -> Samples:
    """One tensor with elements in [low, high): a matrix, a 0-d and an empty one."""
    def samples(make: Make) -> Iterable[Sample]:
        yield sample(make(3, 4, low=low, high=high), **kwargs)
        yield sample(make(low=low, high=high), **kwargs)
        yield sample(make(0, 2, low=low, high=high), **kwargs)
    return samples


def apart(*args: Any, **kwargs: Any) -> Samples:
    """One tensor whose elements keep their distance from 0 and each other."""
    def samples(make: Make) -> Iterable[Sample]:
        yield sample(make.apart(3, 5), *args, **kwargs)
        yield sample(make.apart(), *args, **kwargs)
    return samples


def pairs(low: float = -2.0, high: float = 2.0, low2: float | None = None, high2: float | None = None,
          number: float | None = None) -> Samples:
    """Two tensors: alike, broadcast both ways, 0-d, and (where `number` is given) a number."""
    def samples(make: Make) -> Iterable[Sample]:
        def second(*shape: int) -> Any:
            return make(*shape, low=low if low2 is None else low2, high=high if high2 is None else high2)

        yield sample(make(3, 4, low=low, high=high), second(3, 4))
        yield sample(make(3, 4, low=low, high=high), second(4))
        yield sample(make(1, 4, low=low, high=high), second(3, 1))
        yield sample(make(2, low=low, high=high), second())
        if number is not None:
            yield sample(make(3, low=low, high=high), number)
    return samples


def pairs_apart(number: float | None = None) -> Samples:
    """Two tensors whose elements keep their distance from each other's."""
    def samples(make: Make) -> Iterable[Sample]:
        yield sample(make.apart(3, 4), make.apart(3, 4) * 1.03)
        yield sample(make.apart(3, 4), make.apart(4) * 1.03)
        if number is not None:
            yield sample(make.apart(5), number)
    return samples


# ----- arithmetic -----

both = {"complex": True, "integers": True}
record("add", pairs(number=3.0), reference=np.add, covers=("_add_scaled",), **both)
record("sub", pairs(number=3.0), reference=np.subtract, complex=True)
record("mul", pairs(number=3.0), reference=np.multiply, **both)
record("div", pairs(low2=0.5, number=3.0), reference=np.true_divide, **both)
record("rsub", pairs(number=3.0), reference=lambda x, y: y - x, complex=True)
record("floor_divide", pairs(low2=0.5, number=3.0), reference=np.floor_divide, differentiable=False, integers=True)
record("remainder", pairs(low2=1.9, high2=2.1, number=0.7), reference=np.remainder, integers=True)
record("fmod", pairs(low2=2.1, high2=2.5, number=0.7), reference=np.fmod, integers=True)
record("neg", over(-2, 2), reference=np.negative, complex=True)
record("positive", over(-2, 2), reference=np.positive, **both)
record("reciprocal", over(0.5, 2), reference=np.reciprocal, complex=True)
record("pow", lambda make: [
    sample(make(3, 4, low=0.5), make(3, 4)), sample(make(3, 1, low=0.5), make(4)),
    sample(make(3, low=0.5), 2), sample(make(3, low=0.5), 3), sample(make(3, low=0.5), 0.5),
    sample(make(3, low=0.5), -1.5), sample(make(3, low=0.5), 0), sample(2.5, make(3))],
    reference=np.power, complex=True)
record("float_power", pairs(low=0.5, number=2.5), reference=np.float_power, complex=True,
       keeps_dtype=False)
record("square", over(-2, 2), reference=np.square, **both)
record("addcmul", lambda make: [sample(make(3, 4), make(3, 4), make(4)), sample(make(3), make(3), make(3), value=0.7)],
       reference=lambda x, a, b, value=1: x + value * a * b, complex=True)
record("addcdiv", lambda make: [sample(make(3, 4), make(3, 4), make(4, low=0.5)),
                                sample(make(3), make(3), make(3, low=0.5), value=0.7)],
       reference=lambda x, a, b, value=1: x + value * a / b, complex=True)
record("abs", apart(), reference=np.abs, integers=True)
record("sign", apart(), reference=np.sign, integers=True)
record("sgn", over(0.5, 2), reference=np.sign, **both)


def whole_pairs(make: Make) -> Iterable[Sample]:
    yield sample(make.integers(3, 4, low=-20, high=20), make.integers(4, low=-20, high=20))


record("gcd", whole_pairs, reference=np.gcd, differentiable=False, floats=False)
record("lcm", whole_pairs, reference=np.lcm, differentiable=False, floats=False)

# ----- exponentials and logarithms -----

for _name, _low, _high in (("exp", -2, 2), ("exp2", -2, 2), ("expm1", -2, 2), ("log", 0.5, 3), ("log2", 0.5, 3),
                           ("log10", 0.5, 3), ("log1p", -0.5, 2), ("sqrt", 0.5, 3)):
    record(_name, over(_low, _high), reference=getattr(np, _name) if _name != "exp2" else lambda x: 2.0 ** x, **both)
record("rsqrt", over(0.5, 3), reference=lambda x: x ** -0.5, complex=True)
record("sigmoid", over(-3, 3), reference=lambda x: 1 / (1 + np.exp(-x)), **both)
record("logit", lambda make: [sample(make(3, 4, low=0.1, high=0.9)), sample(make(5, low=0.1, high=0.9), 0.05)],
       reference=lambda x, eps=None: np.log(x / (1 - x)))
record("logaddexp", pairs(), reference=np.logaddexp)
record("logaddexp2", pairs(), reference=np.logaddexp2)
record("ldexp", pairs(), reference=lambda x, y: x * 2.0 ** y, complex=True)
record("frexp", over(0.55, 0.95), reference=np.frexp)

# ----- trigonometry -----

for _name, _reference in (("sin", np.sin), ("cos", np.cos), ("tan", np.tan), ("sinh", np.sinh), ("cosh", np.cosh),
                          ("tanh", np.tanh), ("atan", np.arctan), ("asinh", np.arcsinh)):
    record(_name, over(-1.2, 1.2), reference=_reference, **both)
for _name, _reference in (("asin", np.arcsin), ("acos", np.arccos), ("atanh", np.arctanh)):
    record(_name, over(-0.9, 0.9), reference=_reference, complex=True)
record("acosh", over(1.2, 3), reference=np.arccosh, complex=True)
record("atan2", pairs(low=0.5), reference=np.arctan2)
record("hypot", pairs(low=0.5), reference=np.hypot)
record("sinc", over(0.1, 2), reference=np.sinc, complex=True)
record("deg2rad", over(-180, 180), reference=np.deg2rad, integers=True)
record("rad2deg", over(-3, 3), reference=np.rad2deg, integers=True)

# ----- special functions -----


def by_element(function: Callable[..., float]) -> Callable[..., Any]:
    return np.vectorize(function, otypes=[np.float64])


record("erf", over(-2, 2), reference=by_element(math.erf), integers=True)
record("erfc", over(-2, 2), reference=by_element(math.erfc), integers=True)
record("erfinv", over(-0.9, 0.9))
record("special.erfcx", over(-1, 2), reference=by_element(lambda x: math.exp(x * x) * math.erfc(x)))
record("special.ndtr", over(-2, 2), reference=by_element(lambda x: 0.5 * math.erfc(-x / math.sqrt(2))))
record("special.log_ndtr", over(-2, 2), reference=by_element(lambda x: math.log(0.5 * math.erfc(-x / math.sqrt(2)))))
record("special.ndtri", over(0.1, 0.9))
record("lgamma", over(0.5, 4), reference=by_element(math.lgamma), integers=True)
record("digamma", over(0.5, 4))
record("polygamma", lambda make: [sample(1, make(3, 4, low=0.5, high=4)), sample(2, make(3, low=0.5, high=4))],
       covers=("_polygamma",))
record("mvlgamma", lambda make: [sample(make(3, 4, low=1.5, high=4), 1), sample(make(3, low=1.5, high=4), 3)])
record("special.zeta", lambda make: [sample(make(3, low=2, high=4, requires_grad=False), make(3, low=0.5, high=2))])
record("i0", over(-2, 2), reference=np.i0)
record("special.i0e", over(0.3, 2), reference=lambda x: np.i0(x) * np.exp(-np.abs(x)))
record("special.i1", over(0.3, 2))
record("special.i1e", over(0.3, 2))
record("special.entr", over(0.1, 2), reference=lambda x: -x * np.log(x))
record("xlogy", pairs(low2=0.5, number=2.5), reference=lambda x, y: x * np.log(y))
record("special.xlog1py", pairs(low2=0.5, number=2.5), reference=lambda x, y: x * np.log1p(y))

# ----- rounding -----

for _name, _reference in (("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc)):
    record(_name, apart(), reference=_reference, integers=True)
record("round", lambda make: [sample(make.apart(3, 5)), sample(make.apart(4), decimals=1),
                              sample(make.apart(4) * 100, decimals=-1)], reference=np.round)
record("frac", apart(), reference=lambda x: x - np.trunc(x))

# ----- comparison and logic -----

for _name, _reference in (("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("le", np.less_equal),
                          ("gt", np.greater), ("ge", np.greater_equal)):
    record(_name, pairs(number=0.5), reference=_reference, differentiable=False, integers=True)


def specials(make: Make) -> Iterable[Sample]:
    yield sample(make.module.tensor([1.0, -0.0, math.inf, -math.inf, math.nan], dtype=make.dtype))


for _name, _reference in (("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite),
                          ("isposinf", np.isposinf), ("isneginf", np.isneginf), ("isreal", np.isreal),
                          ("signbit", np.signbit)):
    record(_name, specials, reference=_reference, differentiable=False)
record("isclose", lambda make: [sample(make(3, 4), make(3, 4)), sample(make(3, 4), make(3, 4), 0.5, 1.0)],
       reference=np.isclose, differentiable=False)
record("allclose", lambda make: [sample(make(3, 4), make(3, 4)), sample(make(3, 4), make(3, 4), 9.0, 9.0)],
       reference=np.allclose, differentiable=False)
record("equal", lambda make: [sample(make(3, 4), make(3, 4)), sample(make.integers(3), make.integers(4))],
       reference=np.array_equal, differentiable=False)
for _name in ("and", "or", "xor"):
    record(f"logical_{_name}", lambda make: [sample(make.bools(3, 4), make.bools(4)), sample(make(3), make.bools(3))],
           reference=getattr(np, f"logical_{_name}"), differentiable=False)
    record(f"bitwise_{_name}", lambda make: [
        sample(make.integers(3, 4, low=-20, high=20), make.integers(4, low=-20, high=20)),
        sample(make.bools(3), make.bools(3)), sample(make.integers(3), 5)],
        reference=getattr(np, f"bitwise_{_name}"), differentiable=False, floats=False)
record("logical_not", lambda make: [sample(make.bools(3, 4)), sample(make.integers(3))],
       reference=np.logical_not, differentiable=False)
record("bitwise_not", lambda make: [sample(make.bools(3, 4)), sample(make.integers(3))],
       reference=np.invert, differentiable=False, floats=False)
for _name in ("left", "right"):
    record(f"bitwise_{_name}_shift", lambda make: [
        sample(make.integers(3, 4, low=-20, high=20), make.integers(4)), sample(make.integers(3), 2)],
        reference=getattr(np, f"{_name}_shift"), differentiable=False, floats=False)

# ----- selection -----

record("where", lambda make: [sample(make.bools(3, 4), make(3, 4), make(4)), sample(make.bools(3), make(3), 0.5),
                              sample(make.bools(3), 0.5, make(3))], reference=np.where, complex=True)


def clipped(x: Any, min: Any = None, max: Any = None) -> Any:
    x = x if min is None else np.maximum(x, min)
    return x if max is None else np.minimum(x, max)


def bounds(make: Make) -> Iterable[Sample]:
    yield sample(make.apart(3, 5), -1.03, 1.03)
    yield sample(make.apart(3, 5), min=-0.53)
    yield sample(make.apart(3, 5), max=0.53)
    yield sample(make.apart(3, 5), make.apart(5) * 1.03 - 1, make.apart(3, 1) * 0.97 + 1)
    yield sample(make.apart(3, 5), min=make.apart(5) * 1.03)
    yield sample(make.apart(3, 5), max=make.apart(5) * 1.03)


record("clamp", bounds, reference=clipped)
record("clamp_min", pairs_apart(number=0.53), reference=np.maximum)
record("clamp_max", pairs_apart(number=0.53), reference=np.minimum)
for _name in ("maximum", "minimum", "fmax", "fmin"):
    record(_name, pairs_apart(), reference=getattr(np, _name), integers=True)
record("lerp", lambda make: [sample(make(3, 4), make(3, 4), 0.3), sample(make(3, 4), make(4), 0.8),
                             sample(make(3, 4), make(4), make(3, 1))],
       reference=lambda x, y, w: x + w * (y - x), complex=True)
record("copysign", pairs_apart(number=-1.0), reference=np.copysign)
record("nextafter", pairs_apart(), reference=np.nextafter, differentiable=False)
record("heaviside", pairs_apart(), reference=np.heaviside, differentiable=False)
record("nan_to_num", lambda make: [
    sample(make(3, 4)), *(sample(*s.args, nan=1.0, posinf=2.0, neginf=-3.0) for s in specials(make))],
    reference=np.nan_to_num)

# ----- complex numbers -----

for _name, _reference in (("conj", np.conj), ("conj_physical", np.conj), ("real", np.real), ("angle", np.angle)):
    record(_name, over(0.5, 2), reference=_reference, complex=True, inplace=None)
record("resolve_conj", over(-2, 2), reference=lambda x: x, complex=True)
record("resolve_neg", over(-2, 2), reference=lambda x: x, complex=True)
record("complex", lambda make: [sample(make(3, 4), make(3, 4)), sample(make(3, 1), make(4))],
       reference=lambda x, y: x + 1j * y)
record("polar", lambda make: [sample(make(3, 4, low=0.5), make(3, 4)), sample(make(3, 1, low=0.5), make(4))],
       reference=lambda r, phi: r * np.exp(1j * phi))


def complexes(make: Make) -> Iterable[Sample]:
    d = make.module.complex128
    yield sample(make(3, 4, dtype=d))
    yield sample(make(dtype=d))


record("imag", complexes, reference=np.imag, floats=False)
record("view_as_real", complexes, reference=lambda x: np.stack([x.real, x.imag], -1), floats=False)
record("view_as_complex", lambda make: [sample(make(3, 2)), sample(make(2))],
       reference=lambda x: x[..., 0] + 1j * x[..., 1], any_layout=False)

# ----- activations -----

F = "nn.functional."


def normal(x: Any) -> Any:
    return 0.5 * (1 + by_element(math.erf)(x / math.sqrt(2)))


record("relu", apart(), reference=lambda x: np.maximum(x, 0), integers=True)
record(F + "relu6", apart(), reference=lambda x: np.clip(x, 0, 6))
record(F + "leaky_relu", apart(0.2), reference=lambda x, s: np.where(x > 0, x, s * x))
record(F + "elu", apart(0.7), reference=lambda x, a: np.where(x > 0, x, a * np.expm1(x)))
record("selu", apart(), reference=lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)))
record("celu", apart(1.3), reference=lambda x, a: np.where(x > 0, x, a * np.expm1(x / a)))
record(F + "gelu", lambda make: [sample(make(3, 4)), sample(make(3, 4), approximate="tanh")],
       reference=lambda x, approximate="none": x * normal(x) if approximate == "none" else 0.5 * x * (
           1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))))
record(F + "silu", over(-3, 3), reference=lambda x: x / (1 + np.exp(-x)), complex=True)
record(F + "mish", over(-3, 3), reference=lambda x: x * np.tanh(np.log1p(np.exp(x))))
record(F + "softplus", lambda make: [sample(make(3, 4)), sample(make(3, 4), 2.0, 1.0)],
       reference=lambda x, beta=1.0, threshold=20.0: np.where(x * beta > threshold, x,
                                                              np.log1p(np.exp(beta * x)) / beta))
record(F + "softsign", apart(), reference=lambda x: x / (1 + np.abs(x)))
record(F + "tanhshrink", over(-2, 2), reference=lambda x: x - np.tanh(x))
record(F + "logsigmoid", over(-3, 3), reference=lambda x: -np.log1p(np.exp(-x)))
record(F + "hardtanh", apart(-1.03, 0.73), reference=np.clip)
record(F + "hardswish", lambda make: [sample(make.apart(3, 5) * 2.03)],
       reference=lambda x: x * np.clip(x + 3, 0, 6) / 6)
record(F + "hardsigmoid", lambda make: [sample(make.apart(3, 5) * 2.03)], twice=False,
       reference=lambda x: np.clip(x + 3, 0, 6) / 6)
record("hardshrink", apart(0.53), reference=lambda x, limit: np.where(np.abs(x) <= limit, 0, x))
record(F + "softshrink", apart(0.53), reference=lambda x, limit: np.sign(x) * np.maximum(np.abs(x) - limit, 0))
record("threshold", apart(0.53, 9.0), reference=lambda x, t, v: np.where(x > t, x, v))
record("prelu", lambda make: [sample(make.apart(3, 5), make(1)), sample(make.apart(3, 5), make(5)),
                              sample(make.apart(2, 3, 4), make(3))],
       reference=lambda x, w: np.where(x > 0, x, (w.reshape(-1, 1) if x.ndim == 3 else w) * x))
record("rrelu", apart(), reference=lambda x: np.where(x > 0, x, x * (1 / 8 + 1 / 3) / 2))
record(F + "glu", lambda make: [sample(make(3, 4)), sample(make(4, 3), 0)],
       reference=lambda x, dim=-1: np.split(x, 2, dim)[0] / (1 + np.exp(-np.split(x, 2, dim)[1])))
