"""Complex numbers: parts, construction, angles, conjugates."""

from __future__ import annotations

from ..declare import FOUND_DTYPE, elementwise, linear, view

_COMPLEX_OUT = "Expected object of scalar type {result} but got scalar type {out} for argument 'out'"


@linear(holomorphic=False, expose=("torch", "method"), batching_rule="trailing")
def conj(xp, input):
    """The complex conjugate; a real tensor is returned unchanged.

    >>> import flambeau as torch
    >>> torch.conj(torch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return xp.conj(input)


conj.vjp(input=lambda xp, g: xp.conj(g))


@view(name="conj", key="_conj_view", holomorphic=False, expose=(), batching_rule="elementwise")
def _conj_view(xp, input):
    """The complex conjugate, a view with the conjugate bit."""
    return xp.toggle_conjugate(input)


_conj_view.vjp(input=lambda xp, g: xp.conj(g))


@view(name="_neg_view", node="NegViewBackward0", expose=("torch", "method"), batching_rule="elementwise")
def _neg_view(xp, input):
    """The negative, a view with the negative bit.

    >>> import flambeau as torch
    >>> x = torch.tensor([1., 2.])
    >>> torch._neg_view(x), torch._neg_view(x).is_neg()
    (tensor([-1., -2.]), True)
    """
    return xp.toggle_negative(input)


_neg_view.vjp(input=lambda xp, g: -g)


@elementwise(holomorphic=False, expose=("torch", "method", "inplace"), exact_out=FOUND_DTYPE)
def conj_physical(xp, input):
    """The complex conjugate, as a new tensor.

    >>> import flambeau as torch
    >>> torch.conj_physical(torch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return xp.conj(input)


conj_physical.vjp(input=lambda xp, g: xp.conj(g))
conj_physical.jvp(lambda xp, t_input: xp.conj(t_input))
conj_physical.in_place_node("ConjPhysicalBackward1")


@view(holomorphic=False, expose=("torch",), batching_rule="trailing", unsupported_dtypes=dict.fromkeys(
    ("bool", "integer", "float"), RuntimeError("view_as_real is only supported for complex tensors")))
def view_as_real(xp, input):
    """A view of complex numbers as pairs (real, imaginary) along a new last dimension.

    >>> import flambeau as torch
    >>> torch.view_as_real(torch.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    return xp.view_as_real(input)


view_as_real.vjp(input=lambda xp, g: xp.view_as_complex(xp.contiguous(g)))


@view(holomorphic=False, expose=("torch",), unsupported_dtypes=dict.fromkeys(
    ("bool", "integer", "complex", "bfloat16"),
    RuntimeError("view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar "
                 "type: {}")))
def view_as_complex(xp, input):
    """A view of pairs (real, imaginary) in the last dimension as complex numbers.

    >>> import flambeau as torch
    >>> torch.view_as_complex(torch.tensor([[1., 2.]]))
    tensor([1.+2.j])
    """
    return xp.view_as_complex(input)


@view_as_complex.vmap
def _view_as_complex_vmap(xp, batch, input):
    if input.ndim == batch.k:
        raise RuntimeError("Input tensor must have one or more dimensions")
    return xp.view_as_complex(input)


view_as_complex.vjp(input=lambda xp, g: xp.view_as_real(g))


def _check_parts(first, second):
    """Check, before the shapes, that both parts have one of three dtypes.

    Raises:
        RuntimeError: they have not (PyTorch's texts).
    """
    names = [x.dtype.scalar_name for x in (first, second)]
    if not {"Half", "Float", "Double"}.issuperset(names):
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {' and '.join(names)}")
    if names[0] != names[1]:
        raise RuntimeError(f"Expected object of scalar type {names[0]} but got scalar type {names[1]} for second "
                           "argument")


@elementwise(scalar_inputs=(), promote="none", opmath=False, holomorphic=False, expose=("torch",),
             exact_out=_COMPLEX_OUT, check=_check_parts)
def complex(xp, real, imag):
    """Complex numbers, real + i · imag.

    >>> import flambeau as torch
    >>> torch.complex(torch.tensor([1.]), torch.tensor([2.]))
    tensor([1.+2.j])
    """
    return xp.complex(real, imag)


# the parts are saved as PyTorch does, which compares their versions
complex.vjp(real=lambda xp, g, real: xp.real(g),
            imag=lambda xp, g, imag: xp.imag(g))


def _complex_jvp(xp, t_real, t_imag, real, imag):
    return xp.complex(xp.zeros_like(real) if t_real is None else t_real,
                      xp.zeros_like(imag) if t_imag is None else t_imag)


complex.jvp(_complex_jvp)


@elementwise(scalar_inputs=(), promote="none", opmath=False, holomorphic=False, expose=("torch",),
             exact_out=_COMPLEX_OUT, check=_check_parts)
def polar(xp, abs, angle):
    """Complex numbers in polar form, abs · exp(i · angle).

    >>> import flambeau as torch
    >>> torch.polar(torch.tensor([2.]), torch.tensor([0.]))
    tensor([2.+0.j])
    """
    return xp.polar(abs, angle)


def _project(xp, g, direction):
    """The component of g along a direction, Re(conj(g) · direction)."""
    return xp.real(xp.conj(g) * direction)


polar.vjp(abs=lambda xp, g, out: _project(xp, g, xp.sgn(out)),
          angle=lambda xp, g, out: _project(xp, g, out * 1j))


def _polar_jvp(xp, t_abs, t_angle, out):
    total = None
    if t_abs is not None:
        total = xp.sgn(out) * t_abs
    if t_angle is not None:
        by_angle = out * 1j * t_angle
        total = by_angle if total is None else total + by_angle
    return total


polar.jvp(_polar_jvp)


@elementwise(promote="float", holomorphic=False, expose=("torch", "method"))
def angle(xp, input):
    """The angle of each number in the complex plane, in radians.

    >>> import flambeau as torch
    >>> torch.angle(torch.tensor([1j, -1]))
    tensor([1.5708, 3.1416])
    """
    return xp.angle(input)


def _angle_vjp(xp, g, input):
    if not xp.is_complex(input):
        return xp.zeros_like(g)
    size = xp.abs(input)
    return xp.where(input == 0, 0, g * (input * 1j) / (size * size))


def _angle_jvp(xp, t_input, input):
    if not xp.is_complex(input):
        return xp.zeros_like(t_input)
    size = xp.abs(input)
    return xp.where(size == 0, 0, xp.real(xp.conj(t_input) * (input * 1j)) / (size * size))


angle.vjp(input=_angle_vjp)
angle.jvp(_angle_jvp)
