"""Selection: where, clamp, maximum and minimum, interpolation, signs and replacement of non-finite elements."""

from __future__ import annotations

from ... import dtypes
from ..declare import FOUND_DTYPE, elementwise, not_implemented, not_implemented_error

_EXPOSE = ("torch", "method")


@elementwise(unpromoted=("condition",), exact_out="Expected out type to be {result} but got {out}",
             scalar_inputs=("input", "other"), expose=("torch",),
             nondifferentiable_inputs=("condition",))
def where(xp, condition, input, other):
    """input where the condition is true, else other.

    >>> import flambeau as torch
    >>> torch.where(torch.tensor([True, False]), torch.tensor([1., 2.]), 0.)
    tensor([1., 0.])
    """
    return xp.where(condition, input, other)


where.vjp(input=lambda xp, g, condition: xp.where(condition, g, 0),
          other=lambda xp, g, condition: xp.where(condition, 0, g))


# ----- clamping -----

_NO_CLAMP = NotImplementedError("clamp is not supported for complex types")


def _unsupported_in_clamp(kernel):
    """Return PyTorch's errors: complex bounds of a real tensor reach a kernel that lacks them."""
    error = not_implemented_error(kernel)
    return {"complex": lambda input, *bounds: _NO_CLAMP if input.dtype.is_complex else error}


def _check_clamp(input, *bounds):
    if input.dtype.is_complex:
        raise _NO_CLAMP


def _complex_bound(input, **bounds):
    if input.dtype.is_floating_point:  # PyTorch compares with the bound as a real number
        return RuntimeError("value cannot be converted to type double without overflow")
    return _NO_CLAMP


def _unsupported_bools(input, *, min=None, max=None):
    kernel = "clamp_min" if max is None else "clamp_max" if min is None else "clamp"
    return not_implemented_error(f"{kernel}_scalar_cpu")


_UNSUPPORTED_BY_SCALARS = {"complex": _complex_bound, "bool": _unsupported_bools}


@elementwise(name="clamp", key="_clamp_scalars", node="ClampBackward1", exact_out=FOUND_DTYPE,
             expose=(), promoting_params=("min", "max"),
             unsupported_dtypes=_UNSUPPORTED_BY_SCALARS)
def clamp_scalars(xp, input, *, min=None, max=None):
    """input clamped to [min, max], scalars."""
    if min is not None:
        input = xp.maximum(min, input)  # at ties the input: its zeros keep their sign
    return input if max is None else xp.minimum(max, input)


def _clamp_scalars_vjp(xp, g, input, min, max):
    if min is not None and max is not None:
        return xp.where(xp.logical_and(input >= min, input <= max), g, 0)
    return xp.where(input >= min if max is None else input <= max, g, 0)


clamp_scalars.vjp(input=_clamp_scalars_vjp)


@elementwise(name="clamp", key="_clamp_tensors", node="ClampBackward0", expose=(), scalar_inputs=(),
             check=_check_clamp,
             unsupported_dtypes=_unsupported_in_clamp("clamp_cpu") | not_implemented("clamp_cpu", "bool"))
def clamp_tensors(xp, input, min, max):
    """input clamped to [min, max], tensors; max where min > max."""
    return xp.minimum(xp.maximum(input, min), max)


clamp_tensors.vjp(
    input=lambda xp, g, input, min, max: xp.where(xp.logical_and(input >= min, input <= max), g, 0),
    min=lambda xp, g, input, min, max: xp.where(xp.logical_and(input < min, min < max), g, 0),
    max=lambda xp, g, input, min, max: xp.where(xp.logical_or(input > max, max < min), g, 0))


@elementwise(name="clamp", key="_clamp_below", node="ClampBackward0", check=_check_clamp,
             expose=(), scalar_inputs=(),
             unsupported_dtypes=_unsupported_in_clamp("maximum_cpu"), saved="max=None min self")
def clamp_below(xp, input, min):
    """max(input, min), with a tensor `min`."""
    return xp.maximum(input, min)


@elementwise(name="clamp", key="_clamp_above", node="ClampBackward0", check=_check_clamp,
             expose=(), scalar_inputs=(),
             unsupported_dtypes=_unsupported_in_clamp("minimum_cpu"), saved="max min=None self")
def clamp_above(xp, input, max):
    """min(input, max), with a tensor `max`."""
    return xp.minimum(input, max)


@elementwise(node="ClampMinBackward1", scalar_inputs=(), unsupported_dtypes=not_implemented("maximum_cpu", "complex"))
def clamp_min(xp, input, min):
    """max(input, min).

    >>> import flambeau as torch
    >>> torch.clamp_min(torch.tensor([-1., 2.]), 0)
    tensor([0., 2.])
    """
    return xp.maximum(input, min)


@elementwise(node="ClampMaxBackward1", scalar_inputs=(), unsupported_dtypes=not_implemented("minimum_cpu", "complex"))
def clamp_max(xp, input, max):
    """min(input, max).

    >>> import flambeau as torch
    >>> torch.clamp_max(torch.tensor([-1., 2.]), 0)
    tensor([-1.,  0.])
    """
    return xp.minimum(input, max)


@elementwise(name="clamp_min", key="_clamp_min_scalar", node="ClampMinBackward0", exact_out=FOUND_DTYPE,
             expose=(), promoting_params=("min",),
             unsupported_dtypes={"complex": _NO_CLAMP, "bool": _unsupported_bools})
def clamp_min_scalar(xp, input, *, min):
    """max(input, min), with a scalar `min`."""
    return xp.maximum(min, input)


@elementwise(name="clamp_max", key="_clamp_max_scalar", node="ClampMaxBackward0", exact_out=FOUND_DTYPE,
             expose=(), promoting_params=("max",),
             unsupported_dtypes={"complex": _NO_CLAMP, "bool": _unsupported_bools})
def clamp_max_scalar(xp, input, *, max):
    """min(input, max), with a scalar `max`."""
    return xp.minimum(max, input)


for _op in (clamp_below, clamp_min):
    _op.vjp(input=lambda xp, g, input, min: xp.where(input >= min, g, 0),
            min=lambda xp, g, input, min: xp.where(input < min, g, 0))
for _op in (clamp_above, clamp_max):
    _op.vjp(input=lambda xp, g, input, max: xp.where(input <= max, g, 0),
            max=lambda xp, g, input, max: xp.where(input > max, g, 0))
clamp_min_scalar.vjp(input=lambda xp, g, input, min: xp.where(input >= min, g, 0))
clamp_max_scalar.vjp(input=lambda xp, g, input, max: xp.where(input <= max, g, 0))
clamp_min.scalar_overload("min", clamp_min_scalar)
clamp_max.scalar_overload("max", clamp_max_scalar)


# ----- maxima and minima -----

def _complex_unsupported(name):
    return {"complex": RuntimeError(f"{name} not implemented for complex tensors.")}


def _split_ties(xp, g, input, other):
    return xp.where(input == other, g / 2, g)


@elementwise(scalar_inputs=(), expose=_EXPOSE, unsupported_dtypes=_complex_unsupported("maximum"))
def maximum(xp, input, other):
    """The elementwise maximum; nan if either element is nan. At ties each input gets half of the gradient.

    >>> import flambeau as torch
    >>> torch.maximum(torch.tensor([1., 4.]), torch.tensor([3., 2.]))
    tensor([3., 4.])
    """
    return xp.maximum(input, other)


maximum.vjp(input=lambda xp, g, input, other: xp.where(input < other, 0, _split_ties(xp, g, input, other)),
            other=lambda xp, g, input, other: xp.where(input > other, 0, _split_ties(xp, g, input, other)))


@elementwise(scalar_inputs=(), expose=_EXPOSE, unsupported_dtypes=_complex_unsupported("minimum"))
def minimum(xp, input, other):
    """The elementwise minimum; nan if either element is nan. At ties each input gets half of the gradient.

    >>> import flambeau as torch
    >>> torch.minimum(torch.tensor([1., 4.]), torch.tensor([3., 2.]))
    tensor([1., 2.])
    """
    return xp.minimum(input, other)


minimum.vjp(input=lambda xp, g, input, other: xp.where(input > other, 0, _split_ties(xp, g, input, other)),
            other=lambda xp, g, input, other: xp.where(input < other, 0, _split_ties(xp, g, input, other)))


@elementwise(scalar_inputs=(), expose=_EXPOSE, unsupported_dtypes=_complex_unsupported("fmax"))
def fmax(xp, input, other):
    """The elementwise maximum; nan only if both elements are nan.

    >>> import flambeau as torch
    >>> torch.fmax(torch.tensor([1., float("nan")]), torch.tensor([3., 2.]))
    tensor([3., 2.])
    """
    return xp.fmax(input, other)


fmax.vjp(input=lambda xp, g, input, other: xp.where(xp.logical_or(input >= other, xp.isnan(other)), g, 0),
         other=lambda xp, g, input, other: xp.where(xp.logical_or(input >= other, xp.isnan(other)), 0, g))


@elementwise(scalar_inputs=(), expose=_EXPOSE, unsupported_dtypes=_complex_unsupported("fmin"))
def fmin(xp, input, other):
    """The elementwise minimum; nan only if both elements are nan.

    >>> import flambeau as torch
    >>> torch.fmin(torch.tensor([1., float("nan")]), torch.tensor([3., 2.]))
    tensor([1., 2.])
    """
    return xp.fmin(input, other)


fmin.vjp(input=lambda xp, g, input, other: xp.where(xp.logical_or(input <= other, xp.isnan(other)), g, 0),
         other=lambda xp, g, input, other: xp.where(xp.logical_or(input <= other, xp.isnan(other)), 0, g))


# ----- interpolation -----

def _check_lerp(input, end, weight=None):
    for name, x in (("end", end), ("weight", weight)):
        if x is not None and x.dtype != input.dtype and (name == "end" or x.shape):
            raise RuntimeError(f"expected dtype {dtypes.C_NAMES[input.dtype.name]} for `{name}` but got dtype "
                               f"{dtypes.C_NAMES[x.dtype.name]}")


@elementwise(node="LerpBackward1", scalar_inputs=(), check=_check_lerp,
             unsupported_dtypes=not_implemented("lerp_kernel_tensor", "bool", "integer"), exact_out=FOUND_DTYPE)
def lerp(xp, input, end, weight):
    """Linear interpolation, input + weight · (end - input).

    >>> import flambeau as torch
    >>> torch.lerp(torch.tensor([0., 10.]), torch.tensor([10., 20.]), 0.3)
    tensor([ 3., 13.])
    """
    return xp.lerp(input, end, weight)


lerp.vjp(input=lambda g, weight: g * (1 - weight),
         end=lambda g, weight: g * weight,
         weight=lambda g, input, end: g * (end - input))


@elementwise(name="lerp", key="_lerp_scalar", node="LerpBackward0", expose=(), scalar_inputs=(), check=_check_lerp,
             unsupported_dtypes=not_implemented("lerp_kernel_scalar", "bool", "integer"))
def lerp_scalar(xp, input, end, *, weight):
    """`lerp` with a scalar weight."""
    return xp.lerp(input, end, weight)


lerp_scalar.vjp(input=lambda g, weight: g * (1 - weight),
                end=lambda g, weight: g * weight)
lerp.scalar_overload("weight", lerp_scalar)


# ----- signs, steps, adjacent floats, non-finite elements -----

def _copysign_vjp(xp, g, input, out):
    return xp.where(input == 0, 0, g * (out / input))


@elementwise(promote="float", scalar_inputs=(), unsupported_dtypes=not_implemented("copysign_cpu", "complex"))
def copysign(xp, input, other):
    """The magnitude of `input` with the sign of `other`.

    >>> import flambeau as torch
    >>> torch.copysign(torch.tensor([1., -2.]), torch.tensor([-1., 1.]))
    tensor([-1.,  2.])
    """
    return xp.copysign(input, other)


copysign.vjp(input=_copysign_vjp,
             other=lambda xp, g: xp.zeros_like(g))


@elementwise(name="copysign", key="_copysign_scalar", node="CopysignBackward1", expose=(), promote="float",
             promoting_params=("other",), unsupported_dtypes=not_implemented("copysign_cpu", "complex"))
def copysign_scalar(xp, input, *, other):
    """`copysign` with a scalar `other`."""
    return xp.copysign(input, other)


copysign_scalar.vjp(input=_copysign_vjp)
copysign.scalar_overload("other", copysign_scalar)


@elementwise(scalar_inputs=(), opmath=False,
             unsupported_dtypes=not_implemented("nextafter_cpu", "bool", "integer", "complex"))
def nextafter(xp, input, other):
    """The next floating point number after `input` towards `other`.

    >>> import flambeau as torch
    >>> bool(torch.nextafter(torch.tensor(1.), torch.tensor(2.)) > 1)
    True
    """
    return xp.nextafter(input, other)


nextafter.vjp(input=lambda xp, g, input, other: xp.where(input == other, 0, g),
              other=lambda xp, g, input, other: xp.where(input == other, g, 0))


_DIFFERENT_DTYPES = "heaviside is not yet implemented for tensors with different dtypes."


def _check_heaviside(input, values):
    if input.dtype.is_complex or values.dtype.is_complex:
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if input.dtype is not values.dtype:
        raise RuntimeError(_DIFFERENT_DTYPES)


@elementwise(scalar_inputs=(), node="torch::autograd::NotImplemented", check=_check_heaviside,
             exact_out=_DIFFERENT_DTYPES)
def heaviside(xp, input, values):
    """The Heaviside step function: 0 where input < 0, 1 where input > 0, `values` where input = 0.

    >>> import flambeau as torch
    >>> torch.heaviside(torch.tensor([-1., 0., 2.]), torch.tensor([0.5]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return xp.where(input == 0, values, xp.to(input > 0, values.dtype))


def _heaviside_vjp(g):
    raise RuntimeError("derivative for aten::heaviside is not implemented")


heaviside.vjp(input=_heaviside_vjp,
              values=_heaviside_vjp)


@elementwise(opmath=False, complex_gradients=False,
             exact_out="nan_to_num: dtype of out: {out} should be same as input: {result}")
def nan_to_num(xp, input, *, nan=None, posinf=None, neginf=None):
    """input with nan and infinities replaced.

    Args:
        nan: replaces nan; 0 if None.
        posinf, neginf: replace inf and -inf; the dtype's largest and smallest number if None.

    >>> import flambeau as torch
    >>> torch.nan_to_num(torch.tensor([float("nan"), float("inf")]), posinf=1.)
    tensor([0., 1.])
    """
    return xp.nan_to_num(input, nan, posinf, neginf)


nan_to_num.vjp(input=lambda xp, g, input: xp.where(xp.isfinite(input), g, 0))
