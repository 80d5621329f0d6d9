"""Products of elementary reflectors, Q = H₁ H₂ ..., Hᵢ = I - τᵢ vᵢ vᵢᴴ: the orthogonal factor of a QR decomposition.

vᵢ is column i below the diagonal, 1 on it and 0 above. Derivative formulas are stated in full.
"""

from __future__ import annotations

from typing import Any

from ..declare import not_implemented, op
from .matrix_checks import NO_LAPACK, conj_transpose


def _check_geqrf(input: Any) -> None:
    if len(input.shape) < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")


@op(outputs=("a", "tau"), check=_check_geqrf, batching_rule="trailing", holomorphic=False,
    unsupported_dtypes=not_implemented("geqrf_cpu", *NO_LAPACK), castable_out=("torch.geqrf", "a", "tau"))
def geqrf(xp, input):
    """The QR decomposition in compact form: R, below its diagonal the reflectors of Q, and their factors τ.

    >>> import flambeau as torch
    >>> torch.geqrf(torch.tensor([[3.], [4.]])).a
    tensor([[-5.0000],
            [ 0.5000]])
    """
    return xp.geqrf(input)


def _geqrf_vjp(xp, g0, g1):
    raise NotImplementedError("the derivative for 'geqrf' is not implemented.")


geqrf.vjp(input=_geqrf_vjp)


def _reflector(xp, unit, i):
    return xp._basic_index(unit, key=(Ellipsis, slice(i, i + 1)))


def _reflectors(xp, input, k):
    """The vectors vᵢ as columns, (..., m, k)."""
    columns = xp._basic_index(input, key=(Ellipsis, slice(0, k)))
    low = xp.tril(columns, -1)
    ones = xp.ones_like(xp.diagonal(columns, 0, -2, -1))
    rank = len(columns.shape)
    return low + xp._embed_diagonal(ones, size=columns.shape, offset=0, dim1=rank - 2, dim2=rank - 1)


def _identity(xp, input):
    """The first n columns of the identity, of the shape (..., m, n) of the input."""
    rank = len(input.shape)
    ones = xp.ones_like(xp.diagonal(input, 0, -2, -1))
    return xp._embed_diagonal(ones, size=input.shape, offset=0, dim1=rank - 2, dim2=rank - 1)


def _product_vjp(xp, g, input, tau, other, adjoint):
    """The gradients of Q C, or Qᴴ C, with respect to `input`, `tau` and C = `other`."""
    k = tau.shape[-1]
    unit = _reflectors(xp, input, k)
    order = range(k) if adjoint else range(k - 1, -1, -1)
    before = {}
    c = other
    for i in order:
        before[i] = c
        v = _reflector(xp, unit, i)
        factor = _factor(xp, tau, i, adjoint)
        c = c - factor * xp.matmul(v, xp.matmul(conj_transpose(xp, v), c))
    columns, factors = {}, {}
    for i in reversed(order):
        v = _reflector(xp, unit, i)
        factor = _factor(xp, tau, i, adjoint)
        w = xp.matmul(conj_transpose(xp, v), before[i])
        along = xp.matmul(conj_transpose(xp, v), g)
        by_factor = -xp.sum(xp.conj(w) * along, dim=(-2, -1), keepdim=True)
        factors[i] = xp.conj(by_factor) if adjoint else by_factor
        columns[i] = (-xp.conj(factor) * xp.matmul(g, conj_transpose(xp, w))
                      - factor * xp.matmul(before[i], conj_transpose(xp, along)))
        # the product first: NumPy and PyTorch lay the sum out as the product, whatever the layout of g
        g = xp.conj(-factor) * xp.matmul(v, along) + g
    if 0 in tau.shape:
        return xp.zeros_like(input), xp.zeros_like(tau), g
    by_input, by_tau = xp.zeros_like(input), xp.zeros_like(tau)
    for i in range(k):
        key = (Ellipsis, slice(i, i + 1))
        by_input = by_input + xp._embed(columns[i], size=input.shape, key=key)
        by_tau = by_tau + xp._embed(xp.squeeze(factors[i], -1), size=tau.shape, key=key)
    return xp.tril(by_input, -1), by_tau, g


def _factor(xp, tau, i, adjoint):
    factor = xp.unsqueeze(xp._basic_index(tau, key=(Ellipsis, slice(i, i + 1))), -1)
    return xp.conj(factor) if adjoint else factor


def _check_householder(input: Any, tau: Any) -> None:
    name = "torch.linalg.householder_product"
    if len(input.shape) < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if input.shape[-2] < input.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if input.shape[-1] < tau.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if len(input.shape) - len(tau.shape) != 1:
        raise RuntimeError(f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to "
                           f"{len(tau.shape)} and input.ndim is equal to {len(input.shape)}")
    if input.shape[:-2] != tau.shape[:-1]:
        raise RuntimeError(f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
                           f"{list(tau.shape[:-1])}")
    if tau.dtype is not input.dtype:
        raise RuntimeError(f"{name}: tau dtype {tau.dtype.scalar_name} does not match input dtype "
                           f"{input.dtype.scalar_name}")


@op(check=_check_householder, batching_rule="trailing", holomorphic=False, expose=("linalg",),
    unsupported_dtypes=not_implemented("orgqr_cpu", *NO_LAPACK),
    castable_out=("torch.linalg.householder_product", "result"), saved="input tau")
def linalg_householder_product(xp, input, tau):
    """The first n columns of the product of the reflectors of `geqrf`: the factor Q of a QR decomposition.

    Args:
        input: (..., m, n), the reflectors below the diagonal.
        tau: (..., k), their factors, k ≤ n ≤ m.

    >>> import flambeau as torch
    >>> torch.linalg.householder_product(*torch.geqrf(torch.tensor([[3.], [4.]])))
    tensor([[-0.6000],
            [-0.8000]])
    """
    return xp.householder_product(input, tau)


linalg_householder_product.joint_vjp(lambda xp, g, input, tau: _product_vjp(
    xp, g, input, tau, _identity(xp, input), False)[:2])


def _check_ormqr(input: Any, tau: Any, other: Any) -> None:
    name = "torch.ormqr"
    for argument, x in (("input", input), ("other", other)):
        if len(x.shape) < 2:
            raise RuntimeError(f"{name}: {argument} must have at least 2 dimensions.")
    for argument, x, expected in (("tau", tau, len(input.shape) - 1), ("other", other, len(input.shape))):
        if len(x.shape) != expected:
            relation = "one dimension less than input" if argument == "tau" else (
                "the same number of dimensions as input")
            raise RuntimeError(f"{name}: Expected {argument} to have {relation}, but got {argument}.ndim equal to "
                               f"{len(x.shape)} and input.ndim is equal to {len(input.shape)}")
    if tau.shape[:-1] != input.shape[:-2]:
        raise RuntimeError(f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
                           f"{list(tau.shape[:-1])}")
    if other.shape[:-2] != input.shape[:-2]:
        raise RuntimeError(f"{name}: Expected batch dimensions of other to be equal to input.shape[:-2], but got "
                           f"{list(other.shape[:-2])}")
    if tau.dtype is not input.dtype:
        raise RuntimeError(f"{name}: Expected input and tau to have the same dtype, but input has dtype"
                           f"{input.dtype.scalar_name} and tau has dtype {tau.dtype.scalar_name}")
    if other.dtype is not input.dtype:
        raise RuntimeError(f"{name}: Expected input and other to have the same dtype, but input has dtype"
                           f"{input.dtype.scalar_name} and other has dtype {other.dtype.scalar_name}")


def _check_ormqr_sizes(input: Any, tau: Any, other: Any, left: bool) -> None:
    side = -2 if left else -1
    if other.shape[side] < tau.shape[-1]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be greater than or equal to tau.shape[-1]")
    if other.shape[side] != input.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    if tau.shape[-1] > input.shape[-1] or tau.shape[-1] != min(other.shape[side], input.shape[-1]):
        raise RuntimeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")


@op(check=_check_ormqr, batching_rule="trailing", holomorphic=False,
    unsupported_dtypes=not_implemented("ormqr_cpu", *NO_LAPACK),
    exact_out="torch.ormqr: Expected input and result to have the same dtype, but input has dtype{result} and result "
              "has dtype {out}", saved="input2=tau input3=other left self transpose")
def ormqr(xp, input, tau, other, *, left=True, transpose=False):
    """The product of `other` with the square orthogonal matrix Q of a QR decomposition, given as by `geqrf`.

    Args:
        input: (..., m, k), the reflectors below the diagonal.
        tau: (..., k), their factors.
        left: whether Q stands to the left.
        transpose: whether Qᴴ takes the place of Q.

    >>> import flambeau as torch
    >>> torch.ormqr(*torch.geqrf(torch.tensor([[3.], [4.]])), torch.tensor([[3.], [4.]]), transpose=True).abs().round()
    tensor([[5.],
            [0.]])
    """
    _check_ormqr_sizes(input, tau, other, left)
    return xp.multiply_by_q(input, tau, other, left, transpose)


def _ormqr_vjp(xp, g, input, tau, other, left, transpose):
    if left:
        return _product_vjp(xp, g, input, tau, other, transpose)
    # C Q = (Qᴴ Cᴴ)ᴴ
    by_input, by_tau, by_other = _product_vjp(xp, conj_transpose(xp, g), input, tau, conj_transpose(xp, other),
                                              not transpose)
    return by_input, by_tau, conj_transpose(xp, by_other)


ormqr.joint_vjp(lambda xp, g, input, tau, other, left, transpose: _ormqr_vjp(
    xp, g, input, tau, other, left, transpose))
