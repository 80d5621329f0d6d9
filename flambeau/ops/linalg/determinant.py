"""Determinants of batches of matrices, (..., n, n), and their gradients."""

from __future__ import annotations

from ..declare import not_implemented, op
from .matrix_checks import LINALG_OPTIONS, check_batch_of_matrices, transpose_last


@op(node="LinalgDetBackward0", check=check_batch_of_matrices("linalg.det", low=True),
    unsupported_dtypes=not_implemented("lu_cpu", "narrow", empty=False), key="linalg_det", name="linalg_det",
    exact_out=True, **LINALG_OPTIONS)
def linalg_det(xp, A):
    """The determinant of a square matrix.

    >>> import flambeau as torch
    >>> torch.linalg.det(torch.tensor([[2., 1.], [1., 2.]]))
    tensor(3.)
    """
    return xp.det(A)


def _column(xp, x):
    """Return a number for each matrix in a shape that broadcasts with the matrices."""
    return xp.unsqueeze(xp.unsqueeze(x, -1), -1)


@op(expose=(), batching_rule="trailing", nondifferentiable_inputs=("determinant",))
def _cofactors(xp, input, determinant):
    """det(A) A⁻ᵀ, the gradient of the determinant; on arrays also for singular matrices.

    The determinant is a function of `input`: its share of the derivative is part of that by `input`.
    """
    return _column(xp, determinant) * xp.linalg_inv_ex(transpose_last(xp, input))[0]


@op(expose=(), batching_rule="trailing", nondifferentiable_inputs=("determinant",))
def _cofactors_backward(xp, along, input, determinant):
    """The second derivative (Σ(T · W) W - W Tᵀ W) det(A) along T where W = A⁻ᵀ; on arrays also of singular A.

    It is symmetric: the gradient of the cofactors, and their tangent.
    """
    slope = xp.linalg_inv_ex(transpose_last(xp, input))[0]
    return _column(xp, determinant) * (_total(xp, along * slope) * slope - _between(xp, slope, along))


def _total(xp, x):
    return xp.sum(x, (-2, -1), True)


def _between(xp, slope, x):
    """Return W xᵀ W."""
    return xp.matmul(xp.matmul(slope, transpose_last(xp, x)), slope)


def _third_derivative(xp, along, second, input, determinant):
    """Return the third derivative of det(A) along two directions, by the inverse."""
    slope = xp.linalg_inv_ex(transpose_last(xp, input))[0]
    first_trace, second_trace = _total(xp, along * slope), _total(xp, second * slope)
    first, other = _between(xp, slope, along), _between(xp, slope, second)
    both = xp.matmul(xp.matmul(other, transpose_last(xp, along)), slope) + xp.matmul(
        xp.matmul(first, transpose_last(xp, second)), slope)
    weight = first_trace * second_trace - _total(xp, first * second)
    return _column(xp, determinant) * (weight * slope - first_trace * other - second_trace * first + both)


_cofactors.vjp(input=lambda xp, g, input, determinant: xp._cofactors_backward(g, input, determinant))
_cofactors.jvp(lambda xp, t_input, input, determinant: xp._cofactors_backward(t_input, input, determinant))
_cofactors_backward.vjp(
    along=lambda xp, g, input, determinant: xp._cofactors_backward(g, input, determinant),
    input=lambda xp, g, along, input, determinant: _third_derivative(xp, g, along, input, determinant))
linalg_det.vjp(A=lambda xp, g, A, out: _column(xp, g) * xp._cofactors(A, out))


@op(outputs=("sign", "logabsdet"), check=check_batch_of_matrices("linalg.slogdet"), holomorphic=False, exact_out=True,
    **LINALG_OPTIONS)
def linalg_slogdet(xp, A):
    """The sign of the determinant, and the logarithm of its absolute value.

    >>> import flambeau as torch
    >>> torch.linalg.slogdet(torch.tensor([[-1.]])).sign
    tensor(-1.)
    """
    return xp.slogdet(A)


def _slogdet_vjp(xp, g0, g1, A, sign):
    slope = xp.conj(transpose_last(xp, xp.linalg_inv_ex(A)[0]))
    slope = xp.where(_column(xp, xp.eq(sign, 0)), float("nan"), slope)  # there is no inverse
    if xp.is_complex(A):
        # log det = logabsdet + i · angle, and sign = exp(i · angle)
        angle = xp.imag(xp.conj(g0) * sign)
        weight = g1 - 1j * angle
    else:
        weight = g1
    return _column(xp, weight) * slope


linalg_slogdet.vjp(A=lambda xp, g0, g1, A, sign: _slogdet_vjp(xp, g0, g1, A, sign))
