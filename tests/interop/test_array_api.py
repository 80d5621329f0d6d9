"""The array API namespace beside NumPy's main namespace, which follows the same standard."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import flambeau as torch
from flambeau.interop import array_api

OPERANDS = {
    "A": "xp.asarray([[3., -1., 2.], [0.5, 4., -2.]])", "B": "xp.asarray([[1., 2., -3.], [2., 0.5, 1.]])",
    "I": "xp.asarray([[3, -1, 2], [5, 4, -2]])", "J": "xp.asarray([[1, 2, 3], [2, 5, 1]])",
    "C": "xp.asarray([1 + 2j, -3j, 2.])", "M": "xp.asarray([[4., 1.], [1., 3.]])",
}

UNARY = """
abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan log log1p log2 log10
negative positive reciprocal round sign signbit sin sinh sqrt square tan tanh trunc
""".split()  # noqa: SIM905
BINARY = """
add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp maximum
minimum multiply nextafter not_equal pow remainder subtract
""".split()  # noqa: SIM905
BITS = "bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor add multiply floor_divide".split()  # noqa: SIM905

CALLS = [
    *(f"xp.{name}(A)" for name in UNARY), *(f"xp.{name}(A, B)" for name in BINARY),
    *(f"xp.{name}(I, J)" for name in BITS), *"""
xp.add(A, 2.)
xp.maximum(A, 2.)
xp.less(A, 2.)
xp.abs(C)
xp.conj(C)
xp.imag(C)
xp.real(C)
xp.exp(C)
xp.expm1(C)
xp.round(C)
xp.sign(C)
xp.sqrt(C)
xp.bitwise_invert(I)
xp.logical_not(I > 0)
xp.logical_xor(I > 0, J > 1)
xp.add(xp.asarray(1, dtype=xp.int64), xp.ones(2, dtype=xp.int8))
xp.multiply(xp.asarray(2., dtype=xp.float64), xp.ones(2, dtype=xp.float32))
xp.add(xp.ones(2, dtype=xp.float32), xp.ones(2, dtype=xp.complex64))
xp.floor_divide(xp.asarray([float('inf'), 1., -1.]), xp.asarray([2., 3., float('inf')]))
xp.clip(A, -1, 2.5)
xp.clip(I, None, 3)
xp.arange(5)
xp.arange(1., 2., 0.25)
xp.arange(5, 1)
xp.arange(5, 1, -2)
xp.linspace(0., 1., 5)
xp.linspace(0., 1., 5, endpoint=False)
xp.linspace(0., 1j, 3)
xp.eye(3, 4, k=-1)
xp.eye(2, k=5)
xp.full((2, 2), 3)
xp.zeros((2, 3))
xp.ones(2)
xp.zeros_like(I)
xp.ones_like(A, dtype=xp.int32)
xp.full_like(I, 7)
xp.meshgrid(xp.arange(2), xp.arange(3))[0]
xp.meshgrid(xp.arange(2), xp.arange(3), indexing='ij')[1]
xp.tril(A, k=1)
xp.triu(A)
xp.astype(A, xp.int32)
xp.broadcast_to(xp.arange(3), (2, 3))
xp.concat([A, I])
xp.concat([A, B], axis=None)
xp.stack([A, B], axis=1)
xp.unstack(A, axis=1)[2]
xp.expand_dims(A, axis=(0, -1))
xp.squeeze(xp.ones((1, 2, 1)), axis=(0, 2))
xp.permute_dims(A, (1, 0))
xp.moveaxis(xp.ones((2, 3, 4)), (0, 1), (2, 0))
xp.flip(A)
xp.flip(A, axis=1)
xp.roll(A, 1)
xp.roll(A, (1, 2), axis=(0, 1))
xp.repeat(A, 2, axis=1)
xp.repeat(xp.arange(3), xp.asarray([1, 0, 2]))
xp.tile(A, (2, 1, 2))
xp.reshape(A, (3, -1))
xp.sum(A)
xp.sum(A, axis=(0, 1), keepdims=True)
xp.sum(I, axis=0)
xp.sum(xp.ones((2, 0)), axis=1)
xp.sum(xp.asarray([200, 200], dtype=xp.uint8))
xp.sum(xp.asarray([100, 100], dtype=xp.int8))
xp.prod(A, axis=(0, 1))
xp.prod(I, axis=1, keepdims=True)
xp.mean(A, axis=0)
xp.mean(A)
xp.var(A)
xp.var(A, axis=1, correction=1)
xp.std(A, axis=0, keepdims=True)
xp.std(A, correction=0.5)
xp.var(xp.asarray(3.))
xp.max(A, axis=(0, 1), keepdims=True)
xp.min(I, axis=0)
xp.all(A > 0, axis=1)
xp.any(A > 3)
xp.all(xp.ones((2, 0)), axis=1)
xp.cumulative_sum(A, axis=1, include_initial=True)
xp.cumulative_prod(I, axis=0)
xp.cumulative_sum(xp.arange(4))
xp.diff(A)
xp.diff(A, axis=0, prepend=xp.zeros((1, 3)))
xp.diff(A, n=2)
xp.argmax(A)
xp.argmax(A, axis=1, keepdims=True)
xp.argmin(A, keepdims=True)
xp.count_nonzero(A > 0, axis=0)
xp.nonzero(A > 0)[1]
xp.where(A > 0, A, 0.)
xp.searchsorted(xp.asarray([1, 3, 5]), xp.asarray([0, 3, 4]), side='right')
xp.sort(A, axis=0)
xp.argsort(A)
xp.take(A, xp.asarray([2, 0]), axis=1)
xp.take(A, xp.asarray([[-1, 0]]), axis=1)
xp.take_along_axis(A, xp.asarray([[2], [-3]]), axis=1)
xp.isin(I, xp.asarray([3, 4]))
xp.isin(I, 4, invert=True)
xp.unique_all(xp.asarray([[2, 1], [2, 3]])).indices
xp.unique_all(xp.asarray([[2, 1], [2, 3]])).inverse_indices
xp.unique_counts(xp.asarray([2., 1., float('nan'), float('nan')])).counts
xp.unique_counts(C).counts
xp.unique_inverse(xp.asarray([3, 3])).inverse_indices
xp.unique_values(xp.asarray([], dtype=xp.int64))
xp.matmul(A, xp.ones(3))
xp.matrix_transpose(A)
xp.tensordot(A, B, axes=((0, 1), (0, 1)))
xp.vecdot(A, B)
xp.vecdot(C, C)
xp.vecdot(I, J, axis=0)
xp.linalg.cholesky(M)
xp.linalg.cholesky(M, upper=True)
xp.linalg.cross(A, B)
xp.linalg.det(M)
xp.linalg.diagonal(A, offset=1)
xp.linalg.eigvalsh(M)
xp.linalg.inv(M)
xp.linalg.matrix_norm(A)
xp.linalg.matrix_norm(A, ord=1, keepdims=True)
xp.linalg.matrix_power(M, 3)
xp.linalg.matrix_rank(M)
xp.linalg.outer(xp.arange(2), xp.arange(3))
xp.linalg.pinv(A)
xp.linalg.slogdet(M).logabsdet
xp.linalg.solve(M, xp.ones(2))
xp.linalg.solve(M, xp.ones((3, 2, 1)))
xp.linalg.svdvals(A)
xp.linalg.trace(A, offset=1)
xp.linalg.trace(I)
xp.linalg.vector_norm(A)
xp.linalg.vector_norm(A, axis=1, ord=1, keepdims=True)
xp.fft.fft(xp.asarray([1., 2., 3.]) + 0j)
xp.fft.rfft(A, n=4, norm='ortho')
xp.fft.fftfreq(5, d=0.5)
xp.fft.fftshift(A)
xp.fft.fftn(A + 0j, axes=(0, 1))
xp.fft.irfft(C)
xp.fft.hfft(C)
""".strip().splitlines()]


def evaluate(call, xp):
    return eval(call, {"xp": xp, **{name: eval(text, {"xp": xp}) for name, text in OPERANDS.items()}})


@pytest.mark.parametrize("call", CALLS)
def test_results_are_numpys(call):
    with np.errstate(all="ignore"):
        expected = evaluate(call, np)
    torch.set_default_dtype(torch.float64)
    try:
        result = evaluate(call, array_api)
    finally:
        torch.set_default_dtype(torch.float32)
    if "floor_divide" in call and "inf" in call:  # NumPy's deviates from the standard
        expected = np.asarray([np.inf, 0.0, -0.0])
    assert isinstance(result, torch.Tensor)
    assert tuple(result.shape) == expected.shape
    assert result.dtype.numpy == expected.dtype or ("uint8" in call and str(result.dtype).endswith("uint64"))
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12, atol=1e-14)


def test_tensors_return_the_namespace():
    assert torch.ones(2).__array_namespace__() is array_api
    assert torch.ones(2).__array_namespace__(api_version="2023.12") is array_api
    with pytest.raises(ValueError, match="2019"):
        torch.ones(2).__array_namespace__(api_version="2019.01")


def test_every_name_is_there():
    missing = [name for name in array_api.__all__ if not hasattr(array_api, name)]
    assert not missing
    info = array_api.__array_namespace_info__()
    assert info.default_device() in info.devices()
    assert info.dtypes(kind="bool") == {"bool": torch.bool}
    with pytest.raises(ValueError, match="kind"):
        info.dtypes(kind="text")


def test_results_are_differentiable():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    xp = x.__array_namespace__()
    y = xp.sum(xp.multiply(xp.sin(x), xp.linalg.vector_norm(x)))
    y.backward()
    a = x.detach().clone().requires_grad_()
    (torch.sin(a) * torch.linalg.vector_norm(a)).sum().backward()
    assert torch.equal(x.grad, a.grad)


@pytest.mark.parametrize(("call", "error"), [
    ("xp.result_type(1, 2)", TypeError), ("xp.add(xp.ones(2, dtype=xp.int32), 1.5)", TypeError),
    ("xp.reshape(xp.permute_dims(xp.ones((2, 3)), (1, 0)), (6,), copy=False)", ValueError),
    ("xp.asarray([1, 2], copy=False)", ValueError), ("xp.squeeze(xp.ones((2, 3)), 0)", ValueError),
    ("xp.expand_dims(xp.ones(3), 5)", IndexError), ("xp.broadcast_shapes((2,), (3,))", ValueError),
    ("xp.cumulative_sum(xp.ones((2, 2)))", ValueError), ("xp.matrix_transpose(xp.ones(2))", ValueError),
    ("xp.vecdot(xp.ones(2), xp.ones(3))", ValueError), ("xp.isdtype(xp.int8, 'text')", ValueError),
    ("xp.iinfo(xp.float32)", TypeError), ("xp.finfo(xp.int8)", TypeError), ("xp.nonzero(xp.asarray(1))", ValueError),
    ("xp.astype(xp.asarray(1j), xp.float32)", TypeError), ("xp.sum(xp.ones(2), axis=2)", IndexError),
])
def test_errors(call, error):
    with pytest.raises(error):
        evaluate(call, array_api)


def test_limits_take_arrays():
    assert array_api.finfo(torch.ones(1)).eps == np.finfo(np.float32).eps
    assert array_api.finfo(array_api.complex128).dtype is torch.float64
    assert array_api.iinfo(torch.ones(1, dtype=torch.int8)).min == -128


def test_arguments_of_arrays_are_positional_only():
    for name in ("sin", "sum", "reshape", "add"):
        first = next(iter(inspect.signature(getattr(array_api, name)).parameters.values()))
        assert first.kind is first.POSITIONAL_ONLY
