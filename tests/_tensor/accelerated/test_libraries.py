"""Linear algebra and Fourier transforms on devices, by stand-ins for NVIDIA's libraries, against the CPU."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau import codegen
from flambeau._tensor.accelerated import host_copies
from tests._tensor.accelerated.test_operators import tensors
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")
REAL, COMPLEX = torch.float32, torch.complex128


@pytest.fixture(scope="module")
def cupy():
    with cupy_devices() as module:
        yield module


def square(dtype: Any, *shape: int) -> Any:
    """Well-conditioned matrices."""
    torch.manual_seed(len(shape))
    return torch.randn(*shape, dtype=dtype) + 3 * torch.eye(shape[-1], dtype=dtype)


def positive(dtype: Any, *shape: int) -> Any:
    """Hermitian positive definite matrices."""
    a = square(dtype, *shape)
    return a @ a.mH


def check(function: Any, *args: Any, gradients: bool = True) -> None:
    """Compare results, strides and gradients with the CPU's; the host must compute nothing."""
    results, grads = [], []
    for device in ("cpu", "cuda"):
        moved = [x.detach().to(device).requires_grad_(gradients) if isinstance(x, torch.Tensor) else x for x in args]
        host_copies.computed.clear()
        outs = tensors(function(*moved))
        results.append(outs)
        if gradients:
            kept = [x for x in outs if x.requires_grad]
            leaves = [x for x in moved if isinstance(x, torch.Tensor)]
            grads.append(torch.autograd.grad(kept, leaves, [torch.ones_like(x) for x in kept]))
        assert device == "cpu" or not host_copies.computed
    for a, b in zip(*results, strict=True):
        assert b.is_cuda
        assert a.stride() == b.stride()
        torch.testing.assert_close(b.detach().cpu(), a.detach(), rtol=1e-3, atol=1e-4)
    for a, b in zip(*grads, strict=True) if gradients else ():
        torch.testing.assert_close(b.cpu(), a, rtol=1e-2, atol=1e-3)


#: functions of well-conditioned square matrices
OF_ONE = {"inv": torch.linalg.inv, "det": torch.linalg.det, "slogdet": torch.linalg.slogdet,
          "cholesky": lambda x: torch.linalg.cholesky(x @ x.mH),
          "upper cholesky": lambda x: torch.linalg.cholesky(x @ x.mH, upper=True),
          "matrix_exp": lambda x: torch.linalg.matrix_exp(x / 4)}


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize("name", OF_ONE)
def test_functions_of_square_matrices(cupy, dtype, name):
    check(OF_ONE[name], square(dtype, 4, 4))
    check(OF_ONE[name], square(dtype, 2, 1, 3, 3), gradients=False)


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("lead", [(), (3,)])
def test_solutions(cupy, dtype, left, lead):
    a, b = square(dtype, *lead, 3, 3), torch.randn(*lead, 3, 2, dtype=dtype)
    side = b if left else b.mT
    check(lambda x, y: torch.linalg.solve(x, y, left=left), a, side, gradients=not lead)
    for upper in (False, True):
        check(lambda x, y, u=upper: torch.linalg.solve_triangular(x, y, upper=u, left=left), a, side,
              gradients=not lead)
        check(lambda x, y, u=upper: torch.linalg.solve_triangular(x.mT, y, upper=u, left=left, unitriangular=True), a,
              side, gradients=False)
    for adjoint in (False, True):
        check(lambda x, y, t=adjoint: torch.linalg.lu_solve(*torch.linalg.lu_factor(x), y, left=left, adjoint=t), a,
              side, gradients=False)


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
def test_solutions_broadcast(cupy, dtype):
    a, b = square(dtype, 2, 1, 3, 3), torch.randn(3, 3, 2, dtype=dtype)
    check(torch.linalg.solve, a, b, gradients=False)
    check(lambda x, y: torch.linalg.solve_triangular(x, y, upper=True), a, b, gradients=False)
    check(lambda x, y: torch.linalg.solve(x[0, 0], y[0, :, 0]), a, b, gradients=False)


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize("lead", [(), (2, 2)])
def test_factors(cupy, dtype, lead):
    a, b = square(dtype, *lead, 4, 4), torch.randn(*lead, 4, 2, dtype=dtype)
    check(torch.linalg.lu_factor, a, gradients=False)
    check(torch.linalg.lu, a[..., :3], gradients=False)
    check(lambda x: torch.linalg.lu_factor(x[..., :3, :]), a, gradients=False)
    for upper in (False, True):
        check(lambda x, y, u=upper: torch.cholesky_solve(y, x, upper=u), a, b, gradients=False)
        check(lambda x, u=upper: torch.cholesky_inverse(x, upper=u), a, gradients=False)


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (3, 5, 4), (2, 2, 4, 5)])
def test_qr(cupy, dtype, shape):
    a = torch.randn(*shape, dtype=dtype)
    for mode in ("reduced", "complete", "r"):
        check(lambda x, m=mode: [y for y in torch.linalg.qr(x, mode=m) if y.numel()], a, gradients=False)
    check(torch.geqrf, a, gradients=False)


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 2, 4, 5)])
def test_singular_values(cupy, dtype, shape):
    a = torch.randn(*shape, dtype=dtype)
    check(torch.linalg.svdvals, a, gradients=shape == (5, 3))
    for full in (False, True):
        u, s, vh = torch.linalg.svd(a.cuda(), full_matrices=full)
        expected = torch.linalg.svd(a, full_matrices=full)
        assert [x.stride() for x in (u, s, vh)] == [x.stride() for x in expected]
        k = min(shape[-2:])
        torch.testing.assert_close(((u[..., :k] * s[..., None, :]) @ vh[..., :k, :]).cpu(), a, rtol=1e-3, atol=1e-4)
    check(torch.linalg.pinv, a, gradients=False)


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
def test_singular_values_where_rotations_do_not_converge(cupy, dtype):
    if cupy.state is None:  # a GPU's rotations converge
        return
    cupy.state.unconverged = 4
    try:
        for shape in ((4, 4), (5, 3), (3, 5)):
            a = torch.randn(*shape, dtype=dtype)
            for full in (False, True):
                u, s, vh = (x.cpu() for x in torch.linalg.svd(a.cuda(), full_matrices=full))
                assert [x.stride() for x in (u, s, vh)] == [x.stride() for x in torch.linalg.svd(a, full_matrices=full)]
                k = min(shape)
                torch.testing.assert_close((u[:, :k] * s) @ vh[:k], a, rtol=1e-4, atol=1e-5)
    finally:
        cupy.state.unconverged = 0


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize("lead", [(), (3,)])
def test_eigenvalues(cupy, dtype, lead):
    a = positive(dtype, *lead, 4, 4)
    check(torch.linalg.eigvalsh, a)
    check(lambda x: torch.linalg.eigh(x, UPLO="U")[0], a)
    values, vectors = torch.linalg.eigh(a.cuda())
    torch.testing.assert_close((vectors * values[..., None, :] @ vectors.mH).cpu(), a, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
def test_least_squares(cupy, dtype):
    def solve(x: Any, y: Any) -> Any:
        return [each for each in torch.linalg.lstsq(x, y, driver="gels") if each.numel()]

    for a, b in (((5, 3), (5, 2)), ((3, 5), (3, 2)), ((2, 5, 3), (2, 5)), ((2, 1, 3, 5), (1, 3, 3, 2)), ((5, 3), (5,))):
        check(solve, torch.randn(a, dtype=dtype), torch.randn(b, dtype=dtype), gradients=False)
    found = torch.linalg.lstsq(torch.eye(3, device="cuda"), torch.ones(3, 1, device="cuda"))
    assert found.rank.shape == found.singular_values.shape == (0,)
    with pytest.raises(RuntimeError, match="`driver` other than `gels` is not supported on CUDA"):
        torch.linalg.lstsq(torch.eye(3, device="cuda"), torch.ones(3, 1, device="cuda"), driver="gelsd")


def test_errors_are_pytorchs(cupy):
    singular = torch.zeros(2, 3, 3, device="cuda")
    for function, text in (
            (torch.linalg.inv, r"linalg.inv: \(Batch element 0\): The diagonal element 1 is zero, the inversion"),
            (torch.linalg.cholesky, r"linalg.cholesky: \(Batch element 0\): The factorization could not be completed"),
            (lambda x: torch.linalg.solve(x, x), r"torch.linalg.solve: \(Batch element 0\): The solver failed")):
        with pytest.raises(torch.linalg.LinAlgError, match=text):
            function(singular)
    assert torch.linalg.inv_ex(singular).info.tolist() == [1, 1]
    assert torch.linalg.det(singular).tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="Incompatible shapes of A and B"):
        torch.linalg.solve(torch.eye(3, device="cuda"), torch.ones(2, 2, device="cuda"))


def test_gradients_of_singular_determinants(cupy):
    a = torch.tensor([[1., 2., 3.], [2., 4., 6.], [0., 1., 5.]])
    check(torch.linalg.det, torch.stack([a, torch.eye(3)]))


TRANSFORMS = {
    "fft": lambda z, norm: torch.fft.fft(z, norm=norm), "ifft": lambda z, norm: torch.fft.ifft(z, dim=1, norm=norm),
    "fft2": lambda z, norm: torch.fft.fft2(z.transpose(0, 2), norm=norm, dim=(0, 2)),
    "fftn": lambda z, norm: torch.fft.fftn(z, norm=norm), "rfft": lambda z, norm: torch.fft.rfft(z.real, norm=norm),
    "rfft of columns": lambda z, norm: torch.fft.rfft(z.real.transpose(0, 2), dim=0, norm=norm),
    "rfftn": lambda z, norm: torch.fft.rfftn(z.real, norm=norm), "fft of reals": lambda z, norm: torch.fft.fft(
        z.real, norm=norm),
    "irfft": lambda z, norm: torch.fft.irfft(z, n=8, norm=norm),
    "irfftn": lambda z, norm: torch.fft.irfftn(z, norm=norm), "hfft": lambda z, norm: torch.fft.hfft(z, norm=norm),
    "ihfft": lambda z, norm: torch.fft.ihfft(z.real, norm=norm)}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_fourier_transforms(cupy, name):
    torch.manual_seed(0)
    x = torch.randn(3, 4, 5, dtype=torch.complex128)
    for norm in ("backward", "ortho", "forward"):
        check(TRANSFORMS[name], x, norm, gradients=norm == "ortho")


def test_transforms_of_many_dimensions(cupy):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 2, 3, 4, dtype=torch.complex128)
    for function in (torch.fft.fftn, lambda z: torch.fft.fftn(z, dim=(0, 1, 2, 3)), torch.fft.irfftn):
        check(function, x, gradients=False)
    check(torch.fft.rfftn, x.real, gradients=False)


def test_transforms_of_views(cupy):
    torch.manual_seed(0)
    x, real = torch.randn(6, 8, 10, dtype=torch.complex128), torch.randn(6, 8, 10, dtype=torch.float64)
    for view in (lambda z: z[1:, ::2], lambda z: z.transpose(0, 2), lambda z: z[:, :, 1::3], lambda z: z[..., 1:]):
        check(lambda z, v=view: torch.fft.fft(v(z)), x, gradients=False)
        check(lambda z, v=view: torch.fft.fft2(v(z), dim=(0, 1)), x, gradients=False)
        check(lambda z, v=view: torch.fft.rfft(v(z)), real, gradients=False)
        check(lambda z, v=view: torch.fft.rfftn(v(z)), real, gradients=False)
        check(lambda z, v=view: torch.fft.irfft2(v(z)), x, gradients=False)
    check(lambda z: torch.fft.fft(z.expand(3, 6, 8, 10)), x, gradients=False)
    check(lambda z: torch.fft.fft(z.flip(2), dim=1), x, gradients=False)


def test_transforms_compute_on_the_device(cupy):
    x = torch.randn(4, 6, dtype=torch.complex64, device="cuda")
    real = torch.randn(4, 6, device="cuda")
    host_copies.computed.clear()
    torch.fft.ifft2(torch.fft.fft2(x, norm="ortho"))
    torch.fft.irfft(torch.fft.rfft(real))
    torch.fft.fft(real, dim=0)
    assert not host_copies.computed


def test_calls_that_are_repeated_compute_again(cupy):
    for function, make in ((torch.fft.fft, lambda: torch.randn(6, dtype=torch.complex64)),
                           (torch.linalg.inv, lambda: square(REAL, 3, 3) + torch.rand(3, 3)),
                           (torch.linalg.det, lambda: square(REAL, 2, 3, 3) + torch.rand(3, 3))):
        for _ in range(8):
            x = make()
            torch.testing.assert_close(function(x.cuda()).cpu(), function(x), rtol=1e-4, atol=1e-4)


def test_calls_are_captured(cupy):
    x, a = torch.randn(6, dtype=torch.complex64, device="cuda"), torch.eye(3, device="cuda") * 2
    for function in (lambda: torch.fft.fft(x), lambda: torch.linalg.inv_ex(a.expand(2, 3, 3)).inverse,
                     lambda: torch.linalg.solve_triangular(a, a, upper=True), lambda: x * x):
        expected = function()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = function()
        graph.replay()
        torch.testing.assert_close(result, expected)


def test_plans_are_kept(cupy):
    cache = torch.backends.cuda.cufft_plan_cache
    cache.clear()
    assert (cache.size, cache.max_size) == (0, 4096)
    for n in (4, 5, 4, 6):
        torch.fft.fft(torch.ones(n, dtype=torch.complex64, device="cuda"))
    assert cache[0].size == cache[torch.device("cuda", 0)].size == 3
    try:
        cache.max_size = 1
        assert cache.size == 1
        with pytest.raises(RuntimeError, match="cuFFT plan cache size must be non-negative, but got -1"):
            cache.max_size = -1
        with pytest.raises(RuntimeError, match="size is a read-only property"):
            cache.size = 1
    finally:
        cache.max_size = 4096
    with pytest.raises(RuntimeError, match="expected 0 <= device index"):
        cache[64]
