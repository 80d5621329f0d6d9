"""Elementwise operators, activations and losses."""

from __future__ import annotations

import math
from typing import Any

import flambeau as torch

from .converter import Converter, translates

_UNARY = {
    "abs": "Abs", "neg": "Neg", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos", "tan": "Tan",
    "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh", "acosh": "Acosh",
    "atanh": "Atanh", "erf": "Erf", "sigmoid": "Sigmoid", "tanh": "Tanh", "reciprocal": "Reciprocal",
    "softsign": "Softsign", "mish": "Mish",
}
_EXACT = {"floor": "Floor", "ceil": "Ceil", "round": "Round"}


def _floating(c: Converter, x: Any) -> Any:
    """A tensor in the result's dtype: integers are converted."""
    return c.x(x, c.result.dtype)


def _unary(kind: str) -> Any:
    return lambda c, x: c.op(kind, _floating(c, x))


for _name, _kind in _UNARY.items():
    translates(f"aten.{_name}.default")(_unary(_kind))


def _rounding(kind: str) -> Any:
    def run(c: Converter, x: Any) -> Any:
        return c.op(kind, c.x(x)) if c.dtype(x).is_floating_point else c.op("Identity", c.x(x))

    return run


for _name, _kind in _EXACT.items():
    translates(f"aten.{_name}.default")(_rounding(_kind))


@translates("aten.round.decimals")
def _round_to(c: Converter, x: Any, decimals: int = 0) -> Any:
    if not c.dtype(x).is_floating_point:
        return c.op("Identity", c.x(x))
    power = c.const(10.0 ** abs(decimals), c.dtype(x))
    there, back = ("Mul", "Div") if decimals > 0 else ("Div", "Mul")
    return c.op(back, c.op("Round", c.op(there, c.x(x), power)), power)


translates("aten.relu.default")(lambda c, x: c.op("Relu", c.x(x)))
translates("aten.sign.default", "aten.sgn.default")(lambda c, x: c.op("Sign", c.x(x)))
translates("aten.isnan.default")(lambda c, x: c.op("IsNaN", c.x(x)))
translates("aten.isinf.default")(lambda c, x: c.op("IsInf", c.x(x)))
translates("aten.isfinite.default")(
    lambda c, x: c.op("Not", c.op("Or", c.op("IsNaN", c.x(x)), c.op("IsInf", c.x(x)))))
translates("aten.rsqrt.default")(lambda c, x: c.op("Reciprocal", c.op("Sqrt", _floating(c, x))))
translates("aten.square.default")(lambda c, x: c.op("Mul", c.x(x), c.x(x)))
translates("aten.positive.default", "aten.clone.default", "aten.detach.default", "aten.alias.default",
           "aten.contiguous.default", "aten.lift_fresh_copy.default", "aten.lift_fresh.default")(
    lambda c, x, **options: c.op("Identity", c.x(x)))


def _scaled_log(base: float) -> Any:
    return lambda c, x: c.op("Div", c.op("Log", _floating(c, x)), c.const(math.log(base), c.result.dtype))


translates("aten.log2.default")(_scaled_log(2))
translates("aten.log10.default")(_scaled_log(10))
translates("aten.log1p.default")(lambda c, x: c.op("Log", c.op("Add", _floating(c, x), c.const(1, c.result.dtype))))
translates("aten.expm1.default")(lambda c, x: c.op("Sub", c.op("Exp", _floating(c, x)), c.const(1, c.result.dtype)))
translates("aten.exp2.default")(lambda c, x: c.op("Pow", c.const(2, c.result.dtype), _floating(c, x)))
translates("aten.erfc.default")(lambda c, x: c.op("Sub", c.const(1, c.result.dtype), c.op("Erf", _floating(c, x))))
translates("aten.logit.default")(lambda c, x, eps=None: _logit(c, x, eps))
translates("aten.deg2rad.default")(lambda c, x: c.op("Mul", _floating(c, x), c.const(math.pi / 180, c.result.dtype)))
translates("aten.rad2deg.default")(lambda c, x: c.op("Mul", _floating(c, x), c.const(180 / math.pi, c.result.dtype)))


def _logit(c: Converter, x: Any, eps: float | None) -> Any:
    dtype = c.result.dtype
    p = _floating(c, x)
    if eps is not None:
        p = c.op("Clip", p, c.const(eps, dtype), c.const(1 - eps, dtype))
    return c.op("Log", c.op("Div", p, c.op("Sub", c.const(1, dtype), p)))


def _truncated(c: Converter, name: str) -> Any:
    return c.op("Mul", c.op("Sign", name), c.op("Floor", c.op("Abs", name)))


translates("aten.trunc.default")(lambda c, x: _truncated(c, c.x(x)) if c.dtype(x).is_floating_point else c.x(x))
translates("aten.frac.default")(lambda c, x: c.op("Sub", c.x(x), _truncated(c, c.x(x))))


@translates("aten.bitwise_not.default")
def _bitwise_not(c: Converter, x: Any) -> Any:
    return c.op("Not" if c.dtype(x) == torch.bool else "BitwiseNot", c.x(x))


translates("aten.logical_not.default")(lambda c, x: c.op("Not", c.x(x, torch.bool)))


@translates("aten.nan_to_num.default")
def _nan_to_num(c: Converter, x: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    dtype = c.result.dtype
    limits = torch.finfo(dtype)
    name = c.x(x)
    out = c.op("Where", c.op("IsNaN", name), c.const(nan or 0.0, dtype), name)
    choices: list[tuple[Any, Any, dict[str, Any]]] = [(posinf, limits.max, {"detect_negative": 0}),
                                                      (neginf, limits.min, {"detect_positive": 0})]
    for value, limit, options in choices:
        out = c.op("Where", c.op("IsInf", name, **options), c.const(limit if value is None else value, dtype), out)
    return out


# ----- two operands -----

def common(c: Converter, *values: Any) -> Any:
    """The dtype to which operands are promoted."""
    tensors = [c.val(v) for v in values if isinstance(c.val(v), torch.Tensor)]
    dtype = None
    for value in values:
        meta = c.val(value)
        if isinstance(meta, (torch.SymInt, torch.SymFloat)):
            meta = 1 if isinstance(meta, torch.SymInt) else 1.0
        if meta is None:
            continue
        if dtype is None:
            dtype = meta.dtype if isinstance(meta, torch.Tensor) else None
            first = meta
            continue
        if dtype is None or len(tensors) == 2 or not isinstance(meta, torch.Tensor):
            dtype = torch.result_type(first, meta)
        else:
            dtype = torch.promote_types(dtype, meta.dtype)
    return dtype


def _binary(kind: str) -> Any:
    def run(c: Converter, x: Any, y: Any) -> Any:
        dtype = c.result.dtype
        return c.op(kind, c.x(x, dtype), c.x(y, dtype))

    return run


def _with_alpha(kind: str, swapped: bool = False) -> Any:
    def run(c: Converter, x: Any, y: Any, alpha: Any = 1) -> Any:
        dtype = c.result.dtype
        if dtype == torch.bool:
            return c.op("Or" if kind == "Add" else "Xor", c.x(x, dtype), c.x(y, dtype))
        left, right = (y, x) if swapped else (x, y)
        other = c.x(right, dtype)
        if alpha != 1:
            other = c.op("Mul", other, c.const(alpha, dtype))
        return c.op(kind, c.x(left, dtype), other)

    return run


translates("aten.add")(_with_alpha("Add"))
translates("aten.sub")(_with_alpha("Sub"))
translates("aten.rsub")(_with_alpha("Sub", True))


@translates("aten.mul")
def _mul(c: Converter, x: Any, y: Any) -> Any:
    return _binary("And" if c.result.dtype == torch.bool else "Mul")(c, x, y)


@translates("aten.div")
def _div(c: Converter, x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    dtype = c.result.dtype
    if rounding_mode is None:
        return c.op("Div", c.x(x, dtype), c.x(y, dtype))
    if rounding_mode == "floor":
        return _floor_divide(c, x, y)
    if dtype.is_floating_point:
        return _truncated(c, c.op("Div", c.x(x, dtype), c.x(y, dtype)))
    return c.op("Div", c.x(x, dtype), c.x(y, dtype))


@translates("aten.floor_divide")
def _floor_divide(c: Converter, x: Any, y: Any) -> Any:
    dtype = c.result.dtype
    a, b = c.x(x, dtype), c.x(y, dtype)
    if dtype.is_floating_point:
        return c.op("Floor", c.op("Div", a, b))
    quotient = c.op("Div", a, b)  # rounds towards zero
    off = c.op("And", c.op("Not", c.op("Equal", c.op("Mul", quotient, b), a)), c.op(
        "Xor", c.op("Less", a, c.const(0, dtype)), c.op("Less", b, c.const(0, dtype))))
    return c.op("Sub", quotient, c.op("Cast", off, to=c.type_of(dtype)))


@translates("aten.remainder")
def _remainder(c: Converter, x: Any, y: Any) -> Any:
    dtype = c.result.dtype
    a, b = c.x(x, dtype), c.x(y, dtype)
    if not dtype.is_floating_point:
        return c.op("Mod", a, b)
    return c.op("Sub", a, c.op("Mul", c.op("Floor", c.op("Div", a, b)), b))


@translates("aten.fmod")
def _fmod(c: Converter, x: Any, y: Any) -> Any:
    dtype = c.result.dtype
    return c.op("Mod", c.x(x, dtype), c.x(y, dtype), fmod=1)


translates("aten.maximum.default", "aten.max.other")(_binary("Max"))
translates("aten.minimum.default", "aten.min.other")(_binary("Min"))
translates("aten.pow")(lambda c, x, y: c.op("Pow", c.x(x, c.result.dtype), c.x(y, c.result.dtype)))
translates("aten.prelu.default")(lambda c, x, w: c.op("PRelu", c.x(x), _slope(c, x, w)))


def _slope(c: Converter, x: Any, w: Any) -> Any:
    rank = c.rank(x)
    if c.fixed(w, 0) == 1 or rank < 2:
        return c.x(w)
    return c.op("Reshape", c.x(w), c.const([-1, *[1] * (rank - 2)]))


def _comparison(kind: str, negated: bool = False) -> Any:
    def run(c: Converter, x: Any, y: Any) -> Any:
        dtype = common(c, x, y)
        if dtype == torch.bool and kind not in ("Equal",):
            dtype = torch.int32
        out = c.op(kind, c.x(x, dtype), c.x(y, dtype))
        return c.op("Not", out) if negated else out

    return run


for _name, _kind in (("eq", "Equal"), ("lt", "Less"), ("le", "LessOrEqual"), ("gt", "Greater"),
                     ("ge", "GreaterOrEqual")):
    translates(f"aten.{_name}")(_comparison(_kind))
translates("aten.ne")(_comparison("Equal", True))


def _logical(kind: str) -> Any:
    return lambda c, x, y: c.op(kind, c.x(x, torch.bool), c.x(y, torch.bool))


def _bitwise(kind: str) -> Any:
    def run(c: Converter, x: Any, y: Any) -> Any:
        dtype = c.result.dtype
        return c.op(kind if dtype == torch.bool else f"Bitwise{kind}", c.x(x, dtype), c.x(y, dtype))

    return run


for _name in ("and", "or", "xor"):
    translates(f"aten.logical_{_name}.default")(_logical(_name.capitalize()))
    translates(f"aten.bitwise_{_name}", f"aten.__{_name}__")(_bitwise(_name.capitalize()))


@translates("aten.where")
def _where(c: Converter, condition: Any, x: Any, y: Any) -> Any:
    dtype = c.result.dtype
    return c.op("Where", c.x(condition, torch.bool), c.x(x, dtype), c.x(y, dtype))


@translates("aten.masked_fill")
def _masked_fill(c: Converter, x: Any, mask: Any, value: Any) -> Any:
    dtype = c.result.dtype
    return c.op("Where", c.x(mask), c.x(value, dtype), c.x(x))


@translates("aten.clamp", "aten.clamp_min", "aten.clamp_max")
def _clamp(c: Converter, x: Any, low: Any = None, high: Any = None, **named: Any) -> Any:
    name = c.node.target.overloadpacket.__name__
    if name == "clamp_max":
        low, high = None, low
    low, high = named.get("min", low), named.get("max", high)
    dtype = c.result.dtype
    out = c.x(x, dtype)
    if low is not None:
        out = c.op("Max", out, c.x(low, dtype))
    return out if high is None else c.op("Min", out, c.x(high, dtype))


@translates("aten.lerp")
def _lerp(c: Converter, x: Any, y: Any, weight: Any) -> Any:
    dtype = c.result.dtype
    return c.op("Add", c.x(x), c.op("Mul", c.x(weight, dtype), c.op("Sub", c.x(y), c.x(x))))


def _add_combined(kind: str) -> Any:
    def run(c: Converter, x: Any, a: Any, b: Any, value: Any = 1) -> Any:
        dtype = c.result.dtype
        product = c.op(kind, c.x(a, dtype), c.x(b, dtype))
        if value != 1:
            product = c.op("Mul", product, c.const(value, dtype))
        return c.op("Add", c.x(x, dtype), product)

    return run


translates("aten.addcmul.default")(_add_combined("Mul"))
translates("aten.addcdiv.default")(_add_combined("Div"))
translates("aten.hypot.default")(lambda c, x, y: c.op("Sqrt", c.op("Add", c.op("Mul", c.x(x), c.x(x)), c.op(
    "Mul", c.x(y), c.x(y)))))


@translates("aten.xlogy")
def _xlogy(c: Converter, x: Any, y: Any) -> Any:
    dtype = c.result.dtype
    a, b = c.x(x, dtype), c.x(y, dtype)
    zero = c.const(0, dtype)
    out = c.op("Where", c.op("Equal", a, zero), zero, c.op("Mul", a, c.op("Log", b)))
    return c.op("Where", c.op("IsNaN", b), b, out)


@translates("aten.atan2.default")
def _atan2(c: Converter, y: Any, x: Any) -> Any:
    dtype = c.result.dtype
    return quadrant_angle(c, c.x(y, dtype), c.x(x, dtype), dtype)


def quadrant_angle(c: Converter, a: Any, b: Any, dtype: Any) -> Any:
    """The angle of the point (b, a), between -π and π."""
    zero, pi = c.const(0, dtype), c.const(math.pi, dtype)
    plain = c.op("Atan", c.op("Div", a, b))
    turned = c.op("Where", c.op("Less", a, zero), c.op("Sub", plain, pi), c.op("Add", plain, pi))
    out = c.op("Where", c.op("Less", b, zero), turned, plain)
    origin = c.op("And", c.op("Equal", a, zero), c.op("Equal", b, zero))
    return c.op("Where", origin, zero, out)


# ----- activations -----

translates("aten.silu.default")(lambda c, x: c.op("Mul", c.x(x), c.op("Sigmoid", c.x(x))))
translates("aten.hardswish.default")(lambda c, x: c.op("HardSwish", c.x(x)))
translates("aten.hardsigmoid.default")(lambda c, x: c.op("HardSigmoid", c.x(x), alpha=1 / 6, beta=0.5))
translates("aten.relu6.default")(lambda c, x: _clamp(c, x, 0, 6))
translates("aten.hardtanh.default")(lambda c, x, low=-1, high=1: _clamp(c, x, low, high))
translates("aten.leaky_relu.default")(lambda c, x, slope=0.01: c.op("LeakyRelu", c.x(x), alpha=float(slope)))
translates("aten.selu.default")(lambda c, x: c.op("Selu", c.x(x), alpha=1.6732632423543772,
                                                  gamma=1.0507009873554805))
translates("aten.celu.default")(lambda c, x, alpha=1.0: c.op("Celu", c.x(x), alpha=float(alpha)))
translates("aten.log_sigmoid.default")(lambda c, x: c.op("Neg", c.op("Softplus", c.op("Neg", c.x(x)))))
translates("aten.hardshrink.default")(lambda c, x, lambd=0.5: _hardshrink(c, x, lambd))
translates("aten.softshrink.default")(lambda c, x, lambd=0.5: c.op("Shrink", c.x(x), lambd=float(lambd),
                                                                   bias=float(lambd)))


def _hardshrink(c: Converter, x: Any, lambd: float) -> Any:
    dtype = c.result.dtype
    inside = c.op("LessOrEqual", c.op("Abs", c.x(x)), c.const(lambd, dtype))
    return c.op("Where", inside, c.const(0, dtype), c.x(x))


@translates("aten.elu.default")
def _elu(c: Converter, x: Any, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    if input_scale != 1:
        raise c.fail("input_scale")
    out = c.op("Elu", c.x(x), alpha=float(alpha))
    return out if scale == 1 else c.op("Mul", out, c.const(scale, c.result.dtype))


@translates("aten.softplus.default")
def _softplus(c: Converter, x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    dtype = c.result.dtype
    scaled = c.x(x) if beta == 1 else c.op("Mul", c.x(x), c.const(beta, dtype))
    soft = c.op("Softplus", scaled)
    soft = soft if beta == 1 else c.op("Div", soft, c.const(beta, dtype))
    return c.op("Where", c.op("Greater", scaled, c.const(threshold, dtype)), c.x(x), soft)


@translates("aten.threshold.default")
def _threshold(c: Converter, x: Any, threshold: Any, value: Any) -> Any:
    dtype = c.result.dtype
    return c.op("Where", c.op("LessOrEqual", c.x(x), c.const(threshold, dtype)), c.const(value, dtype), c.x(x))


@translates("aten.gelu.default")
def _gelu(c: Converter, x: Any, approximate: str = "none") -> Any:
    dtype = c.result.dtype
    name = c.x(x)
    if c.opset >= 20:
        return c.op("Gelu", name, approximate=approximate)
    half, one = c.const(0.5, dtype), c.const(1, dtype)
    if approximate == "none":
        inner = c.op("Erf", c.op("Div", name, c.const(math.sqrt(2), dtype)))
    else:
        cube = c.op("Mul", name, c.op("Mul", name, name))
        inner = c.op("Tanh", c.op("Mul", c.const(math.sqrt(2 / math.pi), dtype), c.op(
            "Add", name, c.op("Mul", c.const(0.044715, dtype), cube))))
    return c.op("Mul", c.op("Mul", half, name), c.op("Add", one, inner))


@translates("aten.glu.default")
def _glu(c: Converter, x: Any, dim: int = -1) -> Any:
    a, b = c.op("Split", c.x(x), outputs=2, axis=dim, num_outputs=2)
    return c.op("Mul", a, c.op("Sigmoid", b))


def _softmax(kind: str) -> Any:
    def run(c: Converter, x: Any, dim: int, dtype: Any = None) -> Any:
        if not c.rank(x):
            out = c.op(kind, c.op("Reshape", c.x(x, c.result.dtype), c.const([1])), axis=0)
            return c.op("Reshape", out, c.const([]))
        return c.op(kind, c.x(x, c.result.dtype), axis=dim)

    return run


translates("aten.softmax.int")(_softmax("Softmax"))
translates("aten.log_softmax.int")(_softmax("LogSoftmax"))
translates("aten._softmax.default")(lambda c, x, dim, half: _softmax("Softmax")(c, x, dim))
translates("aten._log_softmax.default")(lambda c, x, dim, half: _softmax("LogSoftmax")(c, x, dim))
translates("aten.dropout.default", "aten.feature_dropout.default", "aten.alpha_dropout.default")(
    lambda c, x, p, train: _dropout(c, x, p, train))
translates("aten.native_dropout.default")(lambda c, x, p, train: [_dropout(c, x, p, bool(train)), None])


def _dropout(c: Converter, x: Any, p: float, train: bool) -> Any:
    if not train or not p:
        return c.op("Identity", c.x(x))
    if "alpha" in str(c.node.target) or "feature" in str(c.node.target):
        raise c.fail("training")
    return c.op("Dropout", c.x(x), c.const(p, torch.float32), c.const(True))


# ----- losses -----

def reduced(c: Converter, name: Any, reduction: int) -> Any:
    """A loss's values, their mean or their sum."""
    if reduction == 0:
        return name
    return c.op("ReduceMean" if reduction == 1 else "ReduceSum", name, keepdims=0)


translates("aten.mse_loss.default")(lambda c, x, y, reduction=1: reduced(c, c.op("Mul", *[c.op(
    "Sub", c.x(x), c.x(y))] * 2), reduction))
translates("aten.l1_loss.default")(lambda c, x, y, reduction=1: reduced(c, c.op("Abs", c.op(
    "Sub", c.x(x), c.x(y))), reduction))


def _piecewise(c: Converter, x: Any, y: Any, reduction: int, width: float, scaled: bool) -> Any:
    dtype = c.result.dtype
    distance = c.op("Abs", c.op("Sub", c.x(x), c.x(y)))
    half = c.const(0.5, dtype)
    square = c.op("Mul", half, c.op("Mul", distance, distance))
    linear = c.op("Sub", distance, c.const(0.5 * width, dtype))
    if scaled:  # smooth_l1_loss divides, huber_loss multiplies
        square = c.op("Div", square, c.const(width, dtype))
    else:
        linear = c.op("Mul", linear, c.const(width, dtype))
    return reduced(c, c.op("Where", c.op("Less", distance, c.const(width, dtype)), square, linear), reduction)


translates("aten.smooth_l1_loss.default")(
    lambda c, x, y, reduction=1, beta=1.0: _piecewise(c, x, y, reduction, float(beta), True))
translates("aten.huber_loss.default")(
    lambda c, x, y, reduction=1, delta=1.0: _piecewise(c, x, y, reduction, float(delta), False))


@translates("aten.binary_cross_entropy.default")
def _binary_cross_entropy(c: Converter, x: Any, y: Any, weight: Any = None, reduction: int = 1) -> Any:
    dtype = c.result.dtype
    one, least = c.const(1, dtype), c.const(-100, dtype)
    p, t = c.x(x), c.x(y)
    positive = c.op("Mul", t, c.op("Max", c.op("Log", p), least))
    negative = c.op("Mul", c.op("Sub", one, t), c.op("Max", c.op("Log", c.op("Sub", one, p)), least))
    out = c.op("Neg", c.op("Add", positive, negative))
    return reduced(c, out if weight is None else c.op("Mul", out, c.x(weight)), reduction)


@translates("aten.binary_cross_entropy_with_logits.default")
def _bce_with_logits(c: Converter, x: Any, y: Any, weight: Any = None, pos_weight: Any = None,
                     reduction: int = 1) -> Any:
    one = c.const(1, c.result.dtype)
    t = c.x(y)
    positive = c.op("Softplus", c.op("Neg", c.x(x)))
    if pos_weight is not None:
        positive = c.op("Mul", positive, c.x(pos_weight))
    negative = c.op("Softplus", c.x(x))
    out = c.op("Add", c.op("Mul", t, positive), c.op("Mul", c.op("Sub", one, t), negative))
    return reduced(c, out if weight is None else c.op("Mul", out, c.x(weight)), reduction)


_LOSS = {0: "none", 1: "mean", 2: "sum"}


@translates("aten.nll_loss_nd.default", "aten.nll_loss.default")
def _nll_loss(c: Converter, x: Any, target: Any, weight: Any = None, reduction: int = 1,
              ignore_index: int = -100) -> Any:
    return c.op("NegativeLogLikelihoodLoss", c.x(x), c.x(target), c.x(weight), reduction=_LOSS[reduction],
                ignore_index=ignore_index)


@translates("aten.cross_entropy_loss.default")
def _cross_entropy(c: Converter, x: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100,
                   label_smoothing: float = 0.0) -> Any:
    if c.dtype(target).is_floating_point or c.rank(x) < 2:
        raise c.fail("targets that are probabilities, or an input without a batch")
    if not label_smoothing:
        return c.op("SoftmaxCrossEntropyLoss", c.x(x), c.x(target), c.x(weight), reduction=_LOSS[reduction],
                    ignore_index=ignore_index)
    if weight is not None:
        raise c.fail("label smoothing with weights")
    dtype = c.result.dtype
    log = c.op("LogSoftmax", c.x(x), axis=1)
    hard = c.op("NegativeLogLikelihoodLoss", log, c.x(target), reduction="none", ignore_index=ignore_index)
    soft = c.op("Neg", c.op("ReduceMean", log, c.const([1]), keepdims=0))
    ignored = c.op("Equal", c.x(target), c.const(ignore_index, c.dtype(target)))
    soft = c.op("Where", ignored, c.const(0, dtype), soft)
    out = c.op("Add", c.op("Mul", hard, c.const(1 - label_smoothing, dtype)), c.op("Mul", soft, c.const(
        label_smoothing, dtype)))
    if reduction != 1:
        return reduced(c, out, reduction)
    count = c.op("ReduceSum", c.op("Cast", c.op("Not", ignored), to=c.type_of(dtype)), keepdims=0)
    return c.op("Div", c.op("ReduceSum", out, keepdims=0), count)


@translates("aten.kl_div.default")
def _kl_div(c: Converter, x: Any, target: Any, reduction: int = 1, log_target: bool = False) -> Any:
    dtype = c.result.dtype
    t = c.x(target)
    if log_target:
        out = c.op("Mul", c.op("Exp", t), c.op("Sub", t, c.x(x)))
    else:
        zero = c.const(0, dtype)
        entropy = c.op("Where", c.op("Equal", t, zero), zero, c.op("Mul", t, c.op("Log", t)))
        out = c.op("Sub", entropy, c.op("Mul", t, c.x(x)))
    return reduced(c, out, reduction)


@translates("aten.cosine_similarity.default")
def _cosine_similarity(c: Converter, x: Any, y: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    dtype = c.result.dtype
    axes = c.const([dim])

    def unit(name: Any) -> Any:
        norm = c.op("ReduceL2", name, axes, keepdims=1)
        return c.op("Div", name, c.op("Max", norm, c.const(eps, dtype)))

    return c.op("ReduceSum", c.op("Mul", unit(c.x(x)), unit(c.x(y))), axes, keepdims=0)

