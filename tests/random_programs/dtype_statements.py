"""Statements about dtypes: conversions, operators between dtypes, integers, bools, narrow and complex numbers."""

from __future__ import annotations

from .generation import Unfit, Writer, statement

_DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int8", "uint8", "int32", "int64",
           "bool")
_NUMBERS = ("2", "-1", "0.5", "True", "1j")
_BINARY = ("{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} // {}", "{} % {}", "{} == {}", "{} < {}", "{} & {}",
           "{} | {}", "{} ^ {}", "torch.maximum({}, {})", "torch.logical_and({}, {})",
           "torch.where({}.bool(), {}, {})", "torch.add({}, {}, alpha=2)", "torch.true_divide({}, {})",
           "torch.bitwise_or({}, {})", "{} >= {}", "torch.fmod({}, {})", "torch.eq({}, {})", "torch.pow({}, {})",
           "torch.clamp({}, {})", "torch.isin({}, {})", "torch.remainder({}, {})", "torch.floor_divide({}, {})",
           "torch.div({}, {}, rounding_mode='trunc')", "torch.hypot({}, {})", "torch.copysign({}, {})",
           "torch.xlogy({}, {})", "torch.minimum({}, {})", "torch.fmax({}, {})", "torch.sub({}, {}, alpha=0.5)",
           "torch.searchsorted({}, {})", "torch.bucketize({}, {})", "torch.heaviside({}, {})",
           "torch.logaddexp({}, {})", "torch.lcm({}, {})", "torch.nextafter({}, {})", "{} << {}",
           "torch.float_power({}, {})", "torch.dist({}, {})", "torch.lerp({}, {}, 0.5)", "torch.stack([{}, {}])",
           "torch.nn.functional.mse_loss({}, {})", "torch.logical_xor({}, {})", "torch.allclose({}, {})",
           "torch.matmul({}, {})", "torch.atan2({}, {})", "torch.cat([{}.reshape(-1), {}.reshape(-1)])",
           "torch.result_type({}, {})", "torch.can_cast({}.dtype, {}.dtype)",
           "torch.promote_types({}.dtype, {}.dtype)", "torch.isclose({}, {})", "torch.gcd({}, {})",
           "torch.outer({}.reshape(-1)[:2], {}.reshape(-1)[:2])")
_OF_TENSORS = ("lerp", "bucketize", "searchsorted", "heaviside", "dist", "matmul", "stack", "allclose", "mse_loss",
               "nextafter", "lcm", "hypot", "logaddexp", "maximum", "minimum", "fmax", "logical", "isin")
_UNARY = ("-{}", "~{}", "{}.abs()", "{}.sum()", "{}.prod()", "{}.mean()", "{}.cumsum(0)", "{}.any()", "{}.all()",
          "{}.argmax()", "{}.sqrt()", "{}.sin()", "{}.exp()", "{}.sign()", "{}.logical_not()", "{}.bool()",
          "{}.amax()", "{}.floor()", "{}.round()", "{}.clamp(0, 1)", "{}.clamp(min=-0.5)", "{}.to(torch.float32)",
          "{}.isnan()", "{}.isfinite()", "{}.real", "{}.angle()", "{}.nonzero()", "{}.unique()", "{}.count_nonzero()",
          "{}.var()", "{}.softmax(0)", "{}.relu()", "{}.neg()", "{}.square()", "{}.reciprocal()",
          "{}.sum(dtype=torch.float64)", "{}.max()", "{}.trunc()", "{}.frac()", "{}.sgn()", "{}.norm()", "{}.std()",
          "{}.logsumexp(0)", "{}.cumprod(0)", "{}.isinf()", "{}.sigmoid()", "{}.positive()", "{}.bitwise_not()",
          "{}.nan_to_num()", "{}.view(-1).view(torch.uint8).shape", "{}.is_signed()", "{}.long()", "{}.diff()",
          "{}.amin(0)", "{}.aminmax()", "{}.cummax(0)", "{}.median(0)", "{}.nanmedian()", "{}.kthvalue(1)",
          "{}.mode()", "{}.sort()", "{}.topk(1)", "{}.nansum()", "{}.nanmean()", "{}.prod(dtype=torch.int32)",
          "{}.histc()", "{}.bincount()", "{}.unique(dim=0)", "{}.logcumsumexp(0)", "{}.norm(1)", "{}.std(0)",
          "{}.msort()", "{}.min(0)", "{}.sum((0,), keepdim=True)", "{}.log_softmax(0)", "{}.count_nonzero(0)",
          "{}.renorm(2, 0, 1.0)", "{}.quantile(0.5)", "{}.median()", "{}.argsort()", "{}.flip(0)", "{}.tolist()",
          "{}.item()")
_IN_PLACE = ("{}.add_({n})", "{}.mul_({n})", "{}.div_({n})", "{} += {y}", "{} *= {y}", "{}.fill_({n})",
             "{}.clamp_({n})", "{}.fmod_({n})", "{}.remainder_({n})", "{}.lerp_({y}, 0.5)", "{}.addcmul_({y}, {y})",
             "{}.clamp_max_({n})", "{}.masked_fill_({}, {n})", "{}.eq_({n})", "{}.cumsum_(0)", "{}.tril_()",
             "{}.floor_divide_({n})", "{}.copy_({y})", "{} //= {n}", "{} |= {y}", "{}.neg_()", "{}.sqrt_()",
             "{}.clamp_(0, 1)", "{}.logical_not_()", "{}[...] = {n}", "{}.floor_()", "{}.bitwise_and_({y})",
             "{}.pow_({n})", "{}.masked_fill_({}.bool(), {n})")


def _any_dtype(w: Writer) -> str:
    """An expression of a tensor in some dtype: without a history, whose derivatives have been compared elsewhere."""
    x = w.pick(lambda t: t.numel() < 20)
    if w.value(x).is_complex():
        return f"{x}.detach().contiguous().to(torch.complex64)"
    dtype = w.choose(*_DTYPES)
    return f"({x}.detach() * 3).contiguous().to(torch.{dtype if dtype != 'uint8' else 'int8'})"


@statement(2)
def _unary(w: Writer) -> str:
    return f"{w.fresh()} = " + w.choose(*_UNARY).replace("{}", _any_dtype(w))


@statement(3)
def _binary(w: Writer) -> str:
    x = _any_dtype(w)
    y = w.choose(*_NUMBERS) if w.chance(0.3) else _any_dtype(w)
    text = w.choose(*_BINARY)
    if not y.startswith("(") and any(word in text for word in _OF_TENSORS):
        raise Unfit
    if any("torch.float16" in a and (b == "1j" or "complex" in b) for a, b in ((x, y), (y, x))):
        raise Unfit  # which make complex32
    if not y.startswith("(") and not y.startswith("x") and any(word in text for word in ("reshape", "dtype", "bool()")):
        raise Unfit
    first, second, *rest = text.split("{}")
    return f"{w.fresh()} = {first}{x}{second}{y}" + "".join((x, y)[i % 2] + part for i,
    part in enumerate(rest[:-1])) + (
        rest[-1] if len(rest) < 2 else x + rest[-1])


@statement(2)
def _in_place(w: Writer) -> str:
    name = w.fresh()
    text = w.choose(*_IN_PLACE).replace("{n}", w.choose(*_NUMBERS[:-1])).replace("{y}", _any_dtype(w))
    text = text.replace("{}", name)
    return f"{name} = {_any_dtype(w)}.clone()\n{text}"


@statement(2)
def _recorded(w: Writer) -> str:
    """A conversion that is recorded, and the gradient back through it."""
    x = w.floating(lambda t: not t.is_inference())
    dtype = w.choose("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int32", "bool")
    if w.value(x).is_complex() and not dtype.startswith("complex"):
        raise Unfit
    return f"{w.fresh()} = {x}.{w.choose('to', 'type')}(torch.{dtype}).to({x}.dtype)"
