"""Special functions: the error function, gamma and Bessel functions, entropy and x · log y."""

from __future__ import annotations

from math import log, pi, sqrt

from ..declare import composite, elementwise, not_implemented, not_implemented_error
from ..missing_tangents import refuse_forward_mode

_SPECIAL = ("special",)


def _real(kernel, *more):
    return not_implemented(kernel, "complex", *more)


# ----- the error function and the normal distribution -----

@elementwise(promote="float", unsupported_dtypes=_real("erf_vml_cpu"))
def erf(xp, input):
    """The error function, 2/√π ∫₀ˣ exp(-t²) dt.

    >>> import flambeau as torch
    >>> torch.erf(torch.tensor([0., 1.]))
    tensor([0.0000, 0.8427])
    """
    return xp.erf(input)


erf.vjp(input=lambda xp, g, input: g * (2 / sqrt(pi) * xp.exp(-(input * input))))


@elementwise(promote="float", unsupported_dtypes=_real("erfc_vml_cpu"))
def erfc(xp, input):
    """1 - erf(x), accurate for large x.

    >>> import flambeau as torch
    >>> torch.erfc(torch.tensor([0., 1.]))
    tensor([1.0000, 0.1573])
    """
    return xp.erfc(input)


erfc.vjp(input=lambda xp, g, input: g * (-2 / sqrt(pi) * xp.exp(-(input * input))))


@elementwise(promote="float", unsupported_dtypes=_real("erfinv_vml_cpu"))
def erfinv(xp, input):
    """The inverse of the error function.

    >>> import flambeau as torch
    >>> torch.erfinv(torch.tensor([0., 0.5]))
    tensor([0.0000, 0.4769])
    """
    return xp.erfinv(input)


erfinv.vjp(input=lambda xp, g, input: g * (sqrt(pi) / 2 * xp.exp(xp.square(xp.erfinv(input)))))


@elementwise(promote="float", expose=_SPECIAL, unsupported_dtypes=_real("erfcx_cpu", "narrow"))
def special_erfcx(xp, input):
    """exp(x²) erfc(x), without overflow.

    >>> import flambeau as torch
    >>> torch.special.erfcx(torch.tensor([0., 10.]))
    tensor([1.0000, 0.0561])
    """
    return xp.erfcx(input)


special_erfcx.vjp(input=lambda g, input, out: g * (2 * input * out - 2 / sqrt(pi)))


@composite(expose=_SPECIAL)
def special_ndtr(xp, input):
    """The distribution function of the standard normal, Φ(x).

    >>> import flambeau as torch
    >>> torch.special.ndtr(torch.tensor([0., 1.]))
    tensor([0.5000, 0.8413])
    """
    scaled = xp._mul_scalar(input, other=sqrt(0.5))
    return xp._mul_scalar(xp._add_scalar(xp.erf(scaled), other=1), other=0.5)


@elementwise(promote="float", expose=_SPECIAL, unsupported_dtypes=_real("log_ndtr_cpu", "narrow"))
def special_log_ndtr(xp, input):
    """log Φ(x), accurate for large negative x.

    >>> import flambeau as torch
    >>> torch.special.log_ndtr(torch.tensor([0., -10.]))
    tensor([ -0.6931, -53.2313])
    """
    return xp.log_ndtr(input)


# saved as PyTorch does, whose formula reads `out`
special_log_ndtr.vjp(input=lambda xp, g, input, out: g * (sqrt(2 / pi) / xp.special_erfcx(input * -sqrt(0.5))))


@elementwise(promote="float", expose=_SPECIAL, unsupported_dtypes=_real("ndtri_cpu", "narrow"))
def special_ndtri(xp, input):
    """The inverse of the standard normal's distribution function, Φ⁻¹(x).

    >>> import flambeau as torch
    >>> torch.special.ndtri(torch.tensor([0.5, 0.8413]))
    tensor([0.0000, 0.9998])
    """
    return xp.ndtri(input)


special_ndtri.vjp(input=lambda xp, g, out: g * (sqrt(2 * pi) * xp.exp(out * out * 0.5)))


# ----- gamma -----

@elementwise(promote="float", unsupported_dtypes=_real("lgamma_vml_cpu"))
def lgamma(xp, input):
    """log |Γ(x)|, the logarithm of the gamma function.

    >>> import flambeau as torch
    >>> torch.lgamma(torch.tensor([1., 5.]))
    tensor([0.0000, 3.1781])
    """
    return xp.lgamma(input)


lgamma.vjp(input=lambda xp, g, input: g * xp.digamma(input))


@elementwise(promote="float", unsupported_dtypes=_real("digamma"))
def digamma(xp, input):
    """The digamma function, the derivative of log Γ(x).

    >>> import flambeau as torch
    >>> torch.digamma(torch.tensor([1., 0.5]))
    tensor([-0.5772, -1.9635])
    """
    return xp.digamma(input)


digamma.vjp(input=lambda xp, g, input: g * xp._polygamma(input, n=1))


@elementwise(promote="float", name="polygamma", key="_polygamma", expose=(), unsupported_dtypes={
    "complex": lambda input, n: not_implemented_error(("digamma", "trigamma", "polygamma")[min(n, 2)])})
def polygamma_of_order(xp, input, *, n):
    """The n-th derivative of digamma(x)."""
    return xp.digamma(input) if n == 0 else xp.polygamma(n, input)


polygamma_of_order.vjp(input=lambda xp, g, input, n: g * xp._polygamma(input, n=n + 1))
polygamma_of_order.in_place_node("PolygammaBackward1")


@elementwise(promote="float", expose=("torch", "method", "inplace"),
             unsupported_dtypes=_real("arange_cpu") | {
                 "bool": RuntimeError("The input tensor may not be a boolean tensor.")})
def mvlgamma(xp, input, *, p):
    """The logarithm of the p-dimensional gamma function.

    >>> import flambeau as torch
    >>> torch.mvlgamma(torch.tensor([2., 3.]), 2)
    tensor([0.4516, 1.5502])
    """
    total = xp.lgamma(input)
    for i in range(1, p):
        total = total + xp.lgamma(input - i / 2)
    return total + p * (p - 1) / 4 * log(pi)


def _mvlgamma_vjp(xp, g, input, p):
    total = xp.digamma(input)
    for i in range(1, p):
        total = total + xp.digamma(input - i / 2)
    return g * total


mvlgamma.vjp(input=_mvlgamma_vjp)


@elementwise(promote="float", expose=_SPECIAL, scalar_inputs=(), unsupported_dtypes=_real("zeta_cpu", "narrow"))
def special_zeta(xp, input, other):
    """The Hurwitz zeta function, Σ (k + other)⁻ⁱⁿᵖᵘᵗ over k ≥ 0.

    >>> import flambeau as torch
    >>> torch.special.zeta(torch.tensor([2.]), torch.tensor([1.]))
    tensor([1.6449])
    """
    return xp.zeta(input, other)


def _zeta_vjp_input(g):
    raise NotImplementedError("the derivative for 'zeta' is not implemented.")


def _zeta_vjp_other(xp, g, input, other):
    return -(g * input * xp.special_zeta(input + 1, other))


special_zeta.vjp(input=_zeta_vjp_input, other=_zeta_vjp_other)
special_zeta.jvp(lambda xp, input, other, t_input, t_other: (
    _zeta_vjp_other(xp, t_other, input, other) if t_input is None else refuse_forward_mode("special_zeta")))


@elementwise(promote="float", name="special_zeta", key="_special_zeta_first_scalar", node="SpecialZetaBackward1",
             expose=(), promoting_params=("input",), argument_order=("input", "other"),
             unsupported_dtypes=_real("zeta_cpu", "narrow"))
def _zeta_of_number(xp, other, *, input):
    """`special_zeta` of a number at elements."""
    return xp.zeta(xp.full_like(other, input), other)


@elementwise(promote="float", name="special_zeta", key="_special_zeta_second_scalar", node="SpecialZetaBackward2",
             expose=(), promoting_params=("other",), unsupported_dtypes=_real("zeta_cpu", "narrow"))
def _zeta_at_number(xp, input, *, other):
    """`special_zeta` of elements at a number."""
    return xp.zeta(input, xp.full_like(input, other))


_zeta_of_number.vjp(other=lambda xp, g, other, input: _zeta_vjp_other(xp, g, xp.full_like(other, input), other))
_zeta_at_number.vjp(input=_zeta_vjp_input)
_zeta_at_number.jvp(lambda t_input: refuse_forward_mode("special_zeta"))
special_zeta.scalar_overload("input", _zeta_of_number)
special_zeta.scalar_overload("other", _zeta_at_number)


def _igamma_vjp(xp, g, input, other):
    return g * xp.exp((input - 1) * xp.log(other) - other - xp.lgamma(input))


def _declare_incomplete_gamma(name, primitive, sign, doc, example):
    def forward(xp, input, other):
        return getattr(xp, primitive)(input, other)

    def vjp_input(g):
        raise NotImplementedError(f"the derivative for '{name}: input' is not implemented.")

    forward.__name__ = name
    forward.__doc__ = f"""{doc}

    >>> import flambeau as torch
    >>> torch.{name}(torch.tensor([1., 2.]), torch.tensor([1., 0.5]))
    {example}
    """
    op = elementwise(scalar_inputs=(), expose=("torch", "method", "inplace"),
                     unsupported_dtypes=_real(f"{name}_cpu", "bool", "integer"))(forward)
    op.vjp(input=vjp_input, other=lambda xp, g, input, other: _igamma_vjp(xp, sign * g, input, other))

    def jvp(xp, input, other, t_input, t_other):
        return _igamma_vjp(xp, sign * t_other, input, other) if t_input is None else refuse_forward_mode(name)

    op.jvp(jvp)


_declare_incomplete_gamma("igamma", "gammainc", 1, "The regularized lower incomplete gamma function, "
                          "P(a, x) = 1/Γ(a) ∫₀ˣ tᵃ⁻¹ exp(-t) dt with a = `input`, x = `other`.",
                          "tensor([0.6321, 0.0902])")
_declare_incomplete_gamma("igammac", "gammaincc", -1, "The regularized upper incomplete gamma function, "
                          "1 - P(a, x) with a = `input`, x = `other`.", "tensor([0.3679, 0.9098])")


# ----- Bessel -----

@elementwise(promote="float", unsupported_dtypes=_real("i0_vml_cpu"))
def i0(xp, input):
    """The modified Bessel function I₀.

    >>> import flambeau as torch
    >>> torch.i0(torch.tensor([0., 1.]))
    tensor([1.0000, 1.2661])
    """
    return xp.i0(input)


i0.vjp(input=lambda xp, g, input: g * xp.special_i1(input))


@elementwise(promote="float", expose=_SPECIAL, node="SpecialI0EBackward0", unsupported_dtypes=_real("i0e_cpu"))
def special_i0e(xp, input):
    """exp(-|x|) I₀(x).

    >>> import flambeau as torch
    >>> torch.special.i0e(torch.tensor([0., 1.]))
    tensor([1.0000, 0.4658])
    """
    return xp.i0e(input)


special_i0e.vjp(input=lambda xp, g, input, out: g * (xp.special_i1e(input) - xp.sgn(input) * out))


@elementwise(promote="float", expose=_SPECIAL, unsupported_dtypes=_real("i1_cpu"))
def special_i1(xp, input):
    """The modified Bessel function I₁.

    >>> import flambeau as torch
    >>> torch.special.i1(torch.tensor([0., 1.]))
    tensor([0.0000, 0.5652])
    """
    return xp.i1(input)


def _bessel_ratio(xp, numerator, input):
    # the limit of I₁(x) / x at 0 is 1/2
    return xp.where(input == 0, 0.5, numerator / xp.where(input == 0, 1, input))


special_i1.vjp(input=lambda xp, g, input, out: g * (xp.i0(input) - _bessel_ratio(xp, out, input)))


@elementwise(promote="float", expose=_SPECIAL, node="SpecialI1EBackward0", unsupported_dtypes=_real("i1e_cpu"))
def special_i1e(xp, input):
    """exp(-|x|) I₁(x).

    >>> import flambeau as torch
    >>> torch.special.i1e(torch.tensor([0., 1.]))
    tensor([0.0000, 0.2079])
    """
    return xp.i1e(input)


special_i1e.vjp(input=lambda xp, g, input, out: g * (
    xp.special_i0e(input) - xp.sgn(input) * out - _bessel_ratio(xp, out, input)))


# ----- entropy and x · log y -----

@elementwise(promote="float", expose=_SPECIAL, unsupported_dtypes=_real("entr_cpu"))
def special_entr(xp, input):
    """The entropy -x log x; 0 at x = 0, -inf for x < 0.

    >>> import flambeau as torch
    >>> torch.special.entr(torch.tensor([0., 0.5]))
    tensor([0.0000, 0.3466])
    """
    entropy = xp.where(input == 0, 0, -input * xp.log(input))
    return xp.where(input < 0, float("-inf"), entropy)


special_entr.vjp(input=lambda xp, g, input: g * (-xp.log(input) - 1))


def _x_times_log(xp, input, other, logarithm):
    return xp.where(xp.logical_and(input == 0, xp.logical_not(xp.isnan(other))), 0, input * logarithm)


def _declare_times_log(name, log_name, shift, node, **where):
    """Declare x · log(y + shift) and its overloads for scalars; the result is 0 where x = 0, unless y is nan."""
    kernel = f"{name.removeprefix('special_')}_cpu"

    def logarithm(xp, other):
        return getattr(xp, log_name)(other)

    def by_input(xp, g, input, other):
        constant = xp.logical_and(input == 0, other <= -shift)
        return xp.where(constant, 0, g * logarithm(xp, other))

    def by_other(g, input, other):
        return g * (input / (other + shift if shift else other))  # -0 + 0 would be 0

    def both(xp, input, other):
        return _x_times_log(xp, input, other, logarithm(xp, other))

    def second_scalar(xp, input, *, other):
        return both(xp, input, xp.full_like(input, other))

    def first_scalar(xp, other, *, input):
        return both(xp, xp.full_like(other, input), other)

    common = {"promote": "float", "unsupported_dtypes": _real(kernel), "name": name}
    op = elementwise(scalar_inputs=(), node=node + "0", key=name, **common, **where)(both)
    op.vjp(input=by_input, other=by_other)
    first = elementwise(node=node + "1", key=f"_{name}_first_scalar", expose=(), promoting_params=("input",),
                        argument_order=("input", "other"), **common)(first_scalar)
    first.vjp(other=by_other)
    second = elementwise(node=node + "2", key=f"_{name}_second_scalar", expose=(), promoting_params=("other",),
                         **common)(second_scalar)
    second.vjp(input=lambda xp, g, input, other: by_input(xp, g, input, xp.full_like(input, other)))
    op.scalar_overload("input", first)
    op.scalar_overload("other", second)
    return op


xlogy = _declare_times_log("xlogy", "log", 0, "XlogyBackward")
xlogy.doc = """x log y, and 0 where x is 0.

    >>> import flambeau as torch
    >>> torch.xlogy(torch.tensor([0., 2.]), torch.tensor([0., 3.]))
    tensor([0.0000, 2.1972])
    """
special_xlog1py = _declare_times_log("special_xlog1py", "log1p", 1, "SpecialXlog1PyBackward", expose=_SPECIAL)
special_xlog1py.doc = """x log(1 + y), and 0 where x is 0.

    >>> import flambeau as torch
    >>> torch.special.xlog1py(torch.tensor([0., 2.]), torch.tensor([-1., 2.]))
    tensor([0.0000, 2.1972])
    """
