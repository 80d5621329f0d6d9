"""Activation functions, and the operators that are their gradients."""

from __future__ import annotations

from math import pi, sqrt

from ...backends.numpy.memory import scalar_operand
from ...dtypes import dtype, finfo, of
from ...shapes import wrap_dim
from ..declare import FOUND_DTYPE, composite, elementwise, not_implemented, not_implemented_error, op

_NOT_REAL_FLOAT = ("bool", "integer", "complex")
_F, _F_IN_PLACE = ("nn.functional",), ("nn.functional", "inplace_function")


# ----- gradients of piecewise functions -----
#
# Each is an operator that is constant in `input`, so that second derivatives by the input are 0, not undefined.

@elementwise(node="ThresholdBackwardBackward0", expose=(), scalar_inputs=())
def _threshold_backward(xp, grad, input, *, threshold):
    """grad where input > threshold, else 0."""
    return xp.where(input <= threshold, 0, grad)


_threshold_backward.vjp(
    grad=lambda xp, g, input, threshold: xp._threshold_backward(g, input, threshold=threshold),
    input=lambda xp, g: xp.zeros_like(g))


@elementwise(node="LeakyReluBackwardBackward0", expose=(), scalar_inputs=())
def _leaky_relu_backward(xp, grad, input, *, negative_slope):
    """grad where input > 0, else negative_slope · grad."""
    return xp.where(input > 0, grad, grad * negative_slope)


_leaky_relu_backward.vjp(
    grad=lambda xp, g, input, negative_slope: xp._leaky_relu_backward(g, input, negative_slope=negative_slope),
    input=lambda xp, g: xp.zeros_like(g))


@elementwise(node="HardtanhBackwardBackward0", expose=(), scalar_inputs=())
def _hardtanh_backward(xp, grad, input, *, min_val, max_val):
    """grad where min_val < input < max_val, else 0."""
    return xp.where(xp.logical_or(input <= min_val, input >= max_val), 0, grad)


_hardtanh_backward.vjp(
    grad=lambda xp, g, input, min_val, max_val: xp._hardtanh_backward(g, input, min_val=min_val, max_val=max_val),
    input=lambda xp, g: xp.zeros_like(g))


@elementwise(node="HardshrinkBackwardBackward0", expose=(), scalar_inputs=())
def _shrink_backward(xp, grad, input, *, lambd):
    """grad where |input| > lambd, else 0."""
    return xp.where(xp.logical_and(input >= -lambd, input <= lambd), 0, grad)


_shrink_backward.vjp(
    grad=lambda xp, g, input, lambd: xp._shrink_backward(g, input, lambd=lambd),
    input=lambda xp, g: xp.zeros_like(g))


@elementwise(expose=(), scalar_inputs=(), node="torch::autograd::NotImplemented")
def _hardsigmoid_backward(xp, grad, input):
    """grad / 6 where -3 < input < 3, else 0."""
    # PyTorch's constant: 1/6 in float32, for every dtype
    return xp.where(xp.logical_and(input > -3, input < 3), grad * 0.1666666716337204, 0)


def _hardsigmoid_double_backward(g):
    raise RuntimeError("derivative for aten::hardsigmoid_backward is not implemented")


_hardsigmoid_backward.vjp(grad=_hardsigmoid_double_backward,
                          input=_hardsigmoid_double_backward)


# ----- activations -----

@elementwise(unsupported_dtypes={"bool": RuntimeError("Boolean inputs not supported for relu"),
                      "complex": NotImplementedError("clamp is not supported for complex types")})
def relu(xp, input):
    """max(0, x).

    >>> import flambeau as torch
    >>> torch.relu(torch.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    return xp.maximum(0, input)  # at ties the input: its zeros keep their sign


relu.vjp(input=lambda xp, g, out: xp._threshold_backward(g, out, threshold=0))


@elementwise(expose=_F_IN_PLACE, unsupported_dtypes=not_implemented("leaky_relu_cpu", *_NOT_REAL_FLOAT))
def leaky_relu(xp, input, *, negative_slope=0.01):
    """x where x > 0, else negative_slope · x.

    >>> import flambeau as torch
    >>> torch.nn.functional.leaky_relu(torch.tensor([-1., 2.]))
    tensor([-0.0100,  2.0000])
    """
    return xp.where(input > 0, input, input * negative_slope)


leaky_relu.vjp(input=lambda xp, g, input, negative_slope: xp._leaky_relu_backward(
    g, input, negative_slope=negative_slope))


def _refuse_negative_slope(name, ending=""):
    raise RuntimeError(f"In-place {name} backward calculation is triggered with a negative slope which is not "
                       "supported. This is caused by calling in-place forward function with a negative slope, please "
                       f"call out-of-place version instead.{ending}")


def _leaky_relu_vjp_by_result(xp, g, out, negative_slope):
    if negative_slope < 0:
        _refuse_negative_slope("leakyReLu", " File an issue at https://github.com/pytorch/pytorch if you do require "
                               "supporting in-place leakRelu backward calculation with negative slope")
    return xp._leaky_relu_backward(g, out, negative_slope=negative_slope)


leaky_relu.in_place_node("LeakyReluBackward1", input=_leaky_relu_vjp_by_result)


@elementwise(expose=_F_IN_PLACE, unsupported_dtypes=not_implemented("elu_cpu", *_NOT_REAL_FLOAT))
def elu(xp, input, *, alpha=1, scale=1, input_scale=1):
    """scale · x where x > 0, else scale · alpha · (exp(input_scale · x) - 1).

    >>> import flambeau as torch
    >>> torch.nn.functional.elu(torch.tensor([-1., 2.]))
    tensor([-0.6321,  2.0000])
    """
    scaled = input if scale == 1 else input * scale
    return xp.where(input > 0, scaled, _scale(xp.expm1(_scale(input, input_scale)), alpha * scale))


def _scale(x, factor):
    return x if factor == 1 else x * factor


def _elu_vjp(xp, g, input, alpha, scale, input_scale):
    below = g * (alpha * scale * input_scale * xp.exp(_scale(input, input_scale)))
    return xp.where(input <= 0, below, _scale(g, scale))


elu.vjp(input=_elu_vjp)


def _elu_vjp_by_result(xp, g, out, alpha, scale, input_scale):
    if alpha < 0:
        _refuse_negative_slope("elu")
    return xp.where(out <= 0, g * (_scale(out + alpha * scale, input_scale)), _scale(g, scale))


elu.in_place_node("EluBackward1", input=_elu_vjp_by_result)


@elementwise(expose=("torch", "nn.functional", "inplace_function"),
             unsupported_dtypes=not_implemented("elu_cpu", *_NOT_REAL_FLOAT))
def celu(xp, input, *, alpha=1.0):
    """max(0, x) + min(0, alpha · (exp(x / alpha) - 1)).

    >>> import flambeau as torch
    >>> torch.celu(torch.tensor([-1., 2.]), 2.)
    tensor([-0.7869,  2.0000])
    """
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return xp.where(input > 0, input, xp.expm1(input / alpha) * alpha)


celu.vjp(input=lambda xp, g, input, alpha: xp.where(input <= 0, g * xp.exp(input / alpha), g))


def _celu_vjp_by_result(xp, g, out, alpha):
    if alpha < 0:
        _refuse_negative_slope("elu")
    return xp.where(out <= 0, g * ((out + alpha) / alpha), g)


celu.in_place_node("CeluBackward1", input=_celu_vjp_by_result)


def _unsupported_in_gelu(input, *, approximate="none"):
    return not_implemented_error("GeluKernelImpl") if approximate in ("none", "tanh") else _NO_APPROXIMATION


_NO_APPROXIMATION = RuntimeError("approximate argument must be either none or tanh.")


@elementwise(expose=_F, unsupported_dtypes=dict.fromkeys(_NOT_REAL_FLOAT, _unsupported_in_gelu), exact_out=FOUND_DTYPE)
def gelu(xp, input, *, approximate="none"):
    """x · Φ(x), with the normal distribution function Φ.

    Args:
        approximate: "tanh" for 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))).

    >>> import flambeau as torch
    >>> torch.nn.functional.gelu(torch.tensor([-1., 2.]))
    tensor([-0.1587,  1.9545])
    """
    if approximate == "tanh":
        return 0.5 * input * (1 + xp.tanh(_gelu_inner(input)))
    if approximate != "none":
        raise _NO_APPROXIMATION
    return input * _normal_cdf(xp, input)


def _gelu_inner(x):
    return sqrt(2 / pi) * (x + 0.044715 * (x * x * x))


def _normal_cdf(xp, x):
    return 0.5 * (1 + xp.erf(x * sqrt(0.5)))


def _gelu_vjp(xp, g, input, approximate):
    if approximate == "tanh":
        t = xp.tanh(_gelu_inner(input))
        inner = sqrt(2 / pi) * (1 + 3 * 0.044715 * (input * input))
        return g * (0.5 * (1 + t) + 0.5 * input * ((1 - t * t) * inner))
    density = xp.exp(-0.5 * (input * input)) * (1 / sqrt(2 * pi))
    return g * (_normal_cdf(xp, input) + input * density)


gelu.vjp(input=_gelu_vjp)


@elementwise(expose=_F_IN_PLACE, unsupported_dtypes=not_implemented("silu_cpu", "bool", "integer"))
def silu(xp, input):
    """x · sigmoid(x).

    >>> import flambeau as torch
    >>> torch.nn.functional.silu(torch.tensor([-1., 2.]))
    tensor([-0.2689,  1.7616])
    """
    return input / (1 + xp.exp(-input))


def _silu_vjp(xp, g, input):
    s = xp.sigmoid(input)
    return g * (s * (1 + input * (1 - s)))


silu.vjp(input=_silu_vjp)


@elementwise(expose=_F_IN_PLACE, unsupported_dtypes=not_implemented("mish_cpu", *_NOT_REAL_FLOAT))
def mish(xp, input):
    """x · tanh(softplus(x)).

    >>> import flambeau as torch
    >>> torch.nn.functional.mish(torch.tensor([-1., 2.]))
    tensor([-0.3034,  1.9440])
    """
    return input * xp.tanh(xp.log1p(xp.exp(input)))


def _mish_vjp(xp, g, input):
    t = xp.tanh(xp.log1p(xp.exp(input)))
    return g * (t + input * xp.sigmoid(input) * (1 - t * t))


mish.vjp(input=_mish_vjp)


@elementwise(expose=_F, exact_out=FOUND_DTYPE, unsupported_dtypes=not_implemented("softplus_cpu", *_NOT_REAL_FLOAT))
def softplus(xp, input, *, beta=1, threshold=20):
    """log(1 + exp(beta · x)) / beta, and x where beta · x > threshold.

    >>> import flambeau as torch
    >>> torch.nn.functional.softplus(torch.tensor([-1., 2.]))
    tensor([0.3133, 2.1269])
    """
    if isinstance(beta, complex) or isinstance(threshold, complex):
        raise RuntimeError("value cannot be converted to type float without overflow")
    scaled = input * beta
    return xp.where(scaled > threshold, input, xp.log1p(xp.exp(scaled)) / beta)


def _softplus_vjp(xp, g, input, beta, threshold):
    scaled = input * beta
    return xp.where(scaled > threshold, g, g * xp.sigmoid(scaled))


softplus.vjp(input=_softplus_vjp)


@elementwise(expose=_F, name="logsigmoid", node="LogSigmoidBackward0",
             exact_out="expected scalar type {result} but found {out}",
             unsupported_dtypes=not_implemented("log_sigmoid_cpu", *_NOT_REAL_FLOAT))
def logsigmoid(xp, input):
    """log(sigmoid(x)), without overflow.

    >>> import flambeau as torch
    >>> torch.nn.functional.logsigmoid(torch.tensor([-1., 2.]))
    tensor([-1.3133, -0.1269])
    """
    return xp.minimum(input, 0) - xp.log1p(xp.exp(-xp.abs(input)))


logsigmoid.vjp(input=lambda xp, g, input: g * xp.sigmoid(-input))


_NO_CLAMP = {"complex": NotImplementedError("clamp is not supported for complex types")}


@elementwise(expose=_F_IN_PLACE,
             unsupported_dtypes=_NO_CLAMP | {"bool": RuntimeError("Bool inputs not supported for hardtanh")})
def hardtanh(xp, input, *, min_val=-1.0, max_val=1.0):
    """x limited to [min_val, max_val].

    >>> import flambeau as torch
    >>> torch.nn.functional.hardtanh(torch.tensor([-2., 0.5]))
    tensor([-1.0000,  0.5000])
    """
    if input.dtype.kind in "iu":
        min_val, max_val = int(min_val), int(max_val)
        if input.dtype.kind == "u" and min_val < 0:
            raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return xp.minimum(max_val, xp.maximum(min_val, input))


hardtanh.vjp(input=lambda xp, g, input, min_val, max_val: xp._hardtanh_backward(
    g, input, min_val=min_val, max_val=max_val))


@elementwise(expose=_F_IN_PLACE, unsupported_dtypes=not_implemented("hardswish_cpu", *_NOT_REAL_FLOAT))
def hardswish(xp, input):
    """x · min(max(x + 3, 0), 6) / 6.

    >>> import flambeau as torch
    >>> torch.nn.functional.hardswish(torch.tensor([-1., 4.]))
    tensor([-0.3333,  4.0000])
    """
    return input * xp.minimum(xp.maximum(input + 3, 0), 6) / 6


hardswish.vjp(input=lambda xp, g, input: xp.where(
    input <= -3, 0, xp.where(input < 3, g * (input / 3 + 0.5), g)))


@elementwise(expose=_F_IN_PLACE, unsupported_dtypes=not_implemented("hardsigmoid_cpu", *_NOT_REAL_FLOAT))
def hardsigmoid(xp, input):
    """min(max(x + 3, 0), 6) / 6.

    >>> import flambeau as torch
    >>> torch.nn.functional.hardsigmoid(torch.tensor([-1., 4.]))
    tensor([0.3333, 1.0000])
    """
    return xp.minimum(xp.maximum(input + 3, 0), 6) / 6


hardsigmoid.vjp(input=lambda xp, g, input: xp._hardsigmoid_backward(g, input))


@elementwise(expose=("torch", "method", "nn.functional"),
             unsupported_dtypes=not_implemented("hardshrink_cpu", *_NOT_REAL_FLOAT), exact_out=FOUND_DTYPE)
def hardshrink(xp, input, *, lambd=0.5):
    """x where |x| > lambd, else 0.

    >>> import flambeau as torch
    >>> torch.hardshrink(torch.tensor([-1., 0.3]))
    tensor([-1.,  0.])
    """
    return xp.where(xp.logical_and(input >= -lambd, input <= lambd), 0, input)


hardshrink.vjp(input=lambda xp, g, input, lambd: xp._shrink_backward(g, input, lambd=lambd))


@elementwise(expose=_F, exact_out=FOUND_DTYPE, unsupported_dtypes=not_implemented("softshrink_check", *_NOT_REAL_FLOAT))
def softshrink(xp, input, *, lambd=0.5):
    """x - lambd where x > lambd, x + lambd where x < -lambd, else 0.

    >>> import flambeau as torch
    >>> torch.nn.functional.softshrink(torch.tensor([-1., 0.3]))
    tensor([-0.5000,  0.0000])
    """
    if lambd < 0:
        d = input.dtype if isinstance(input.dtype, dtype) else of(input.dtype)
        raise RuntimeError(f"lambda must be in range [0, {finfo(d).max:g}] for input dtype {d.scalar_name}, but found "
                           f"{lambd:g}")
    return xp.where(input > lambd, input - lambd, xp.where(input < -lambd, input + lambd, input * 0))


softshrink.vjp(input=lambda xp, g, input, lambd: xp._shrink_backward(g, input, lambd=lambd))


@elementwise(expose=("torch", "nn.functional", "inplace_function"), expanded_target=True,
             unsupported_dtypes=not_implemented("threshold_cpu", "bool", "complex"))
def threshold(xp, input, *, threshold, value):
    """x where x > threshold, else value.

    >>> import flambeau as torch
    >>> torch.threshold(torch.tensor([-1., 0.3]), 0., 9.)
    tensor([9.0000, 0.3000])
    """
    dtype = input.dtype
    return xp.where(input <= scalar_operand(threshold, dtype), scalar_operand(value, dtype), input)


threshold.vjp(input=lambda xp, g, input, threshold: xp._threshold_backward(g, input, threshold=threshold))
threshold.in_place_node("ThresholdBackward1")


@elementwise(key="_prelu_kernel", name="prelu", node="PreluKernelBackward0", expose=(), scalar_inputs=(),
             unsupported_dtypes=not_implemented("prelu_cpu", *_NOT_REAL_FLOAT))
def prelu_kernel(xp, input, weight):
    """x where x > 0, else weight · x; the weight is already broadcast along the channels."""
    return xp.where(input > 0, input, weight * input)


@elementwise(node="PreluKernelBackwardBackward0", expose=(), scalar_inputs=())
def _prelu_backward(xp, grad, input, slope):
    """grad where input > 0, else slope · grad."""
    return xp.where(input > 0, grad, slope * grad)


_prelu_backward.vjp(grad=lambda xp, g, input, slope: xp._prelu_backward(g, input, slope),
                    input=lambda xp, g: xp.zeros_like(g),
                    slope=lambda xp, g, grad, input: xp.where(input > 0, 0, grad * g))
prelu_kernel.vjp(input=lambda xp, g, input, weight: xp._prelu_backward(g, input, weight),
                 weight=lambda xp, g, input: xp.where(input > 0, 0, input * g))


@elementwise(key="_rrelu_with_noise", name="rrelu", node="RreluWithNoiseBackward0", expose=(), scalar_inputs=(),
             nondifferentiable_inputs=("noise",),
             unsupported_dtypes={
                 **dict.fromkeys(_NOT_REAL_FLOAT, lambda *_, training, **__: not_implemented_error(
                     "rrelu_with_noise_out_cpu" if training else "leaky_relu_cpu")),
                 "float16": lambda *_, training, **__: (
                     not_implemented_error("rrelu_with_noise_out_cpu") if training else None)})
def rrelu_with_noise(xp, input, noise, *, lower, upper, training):
    """x where x > 0, else slope · x: the slope is `noise` in training, else (lower + upper) / 2."""
    return xp.where(input > 0, input, input * (noise if training else (lower + upper) / 2))


def _rrelu_vjp(xp, g, input, noise, lower, upper, training):
    return xp._prelu_backward(g, input, noise if training else xp.full_like(input, (lower + upper) / 2))


rrelu_with_noise.vjp(input=_rrelu_vjp)


def _rrelu_vjp_by_result(xp, g, out, noise, lower, upper, training):
    if training:
        return g * noise  # 1 where the input is positive
    return _leaky_relu_vjp_by_result(xp, g, out, (lower + upper) / 2)


rrelu_with_noise.in_place_node("RreluWithNoiseBackward1", input=_rrelu_vjp_by_result)


@op(expose=_F, unsupported_dtypes=not_implemented("glu_cpu", *_NOT_REAL_FLOAT))
def glu(xp, input, *, dim=-1):
    """a · sigmoid(b), where a and b are the halves of x along `dim`.

    >>> import flambeau as torch
    >>> torch.nn.functional.glu(torch.tensor([1., 2., 0., 0.]))
    tensor([0.5000, 1.0000])
    """
    a, b = _halves(xp, input, dim)
    return a * xp.sigmoid(b)


def _halves(xp, x, dim):
    axis = wrap_dim(dim, len(x.shape))
    size = x.shape[axis]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {size}")
    return xp.split_with_sizes(x, split_sizes=(size // 2, size // 2), dim=axis)


@composite(expose=())
def _glu_backward(xp, input, g, *, dim):
    """The gradient of glu by its input."""
    a, b = _halves(xp, input, dim)
    s = xp.sigmoid(b)
    return xp.cat([g * s, g * a * (s * (1 - s))], dim=dim)


glu.vjp(input=lambda xp, g, input, dim: xp._glu_backward(input, g, dim=dim))
