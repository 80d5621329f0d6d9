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


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize("lead", [(), (3,), (2, 1, 2)])
def test_factorizations_and_solutions(cupy, dtype, lead):
    a, b = square(dtype, *lead, 4, 4), torch.randn(*lead, 4, 2, dtype=dtype)
    check(torch.linalg.cholesky, positive(dtype, *lead, 4, 4))
    check(lambda x: torch.linalg.cholesky(x, upper=True), positive(dtype, *lead, 4, 4))
    check(torch.linalg.inv, a)
    check(torch.linalg.solve, a, b)
    check(lambda x, y: torch.linalg.solve(x, y, left=False), a, b.mT)
    check(torch.linalg.det, a)
    check(torch.linalg.slogdet, a)
    check(torch.linalg.lu_factor, a, gradients=False)
    check(torch.linalg.lu, a[..., :3], gradients=False)
    check(torch.linalg.matrix_exp, a / 4)
    for options in ({"left": True}, {"left": False}, {"left": True, "adjoint": True},
                    {"left": False, "adjoint": True}):
        side = b if options["left"] else b.mT
        check(lambda x, y, o=options: torch.linalg.lu_solve(*torch.linalg.lu_factor(x), y, **o), a, side,
              gradients=False)
    for upper in (False, True):
        for left in (False, True):
            check(lambda x, y, u=upper, t=left: torch.linalg.solve_triangular(x, y, upper=u, left=t),
                  a, b if left else b.mT)
        check(lambda x, y, u=upper: torch.cholesky_solve(y, x, upper=u), a, b)
    check(torch.cholesky_inverse, a, gradients=False)


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (3, 5, 4), (2, 2, 4, 5)])
def test_orthogonal_decompositions(cupy, dtype, shape):
    a = torch.randn(*shape, dtype=dtype)
    for mode in ("reduced", "complete", "r"):
        check(lambda x, m=mode: [y for y in torch.linalg.qr(x, mode=m) if y.numel()], a, gradients=False)
    check(torch.geqrf, a, gradients=False)
    check(torch.linalg.svdvals, a)
    for full in (False, True):
        u, s, vh = torch.linalg.svd(a.cuda(), full_matrices=full)
        expected = torch.linalg.svd(a, full_matrices=full)
        assert [x.stride() for x in (u, s, vh)] == [x.stride() for x in expected]
        k = min(shape[-2:])
        torch.testing.assert_close(((u[..., :k] * s[..., None, :]) @ vh[..., :k, :]).cpu(), a, rtol=1e-3, atol=1e-4)
    check(torch.linalg.pinv, a)


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize("lead", [(), (3,)])
def test_eigenvalues(cupy, dtype, lead):
    a = positive(dtype, *lead, 4, 4)
    check(torch.linalg.eigvalsh, a)
    check(lambda x: torch.linalg.eigh(x, UPLO="U")[0], a)
    values, vectors = torch.linalg.eigh(a.cuda())
    torch.testing.assert_close((vectors * values[..., None, :] @ vectors.mH).cpu(), a, rtol=1e-3, atol=1e-3)


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


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_fourier_transforms(cupy, norm):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 4, 5, dtype=torch.complex128)
    real = torch.randn(3, 4, 5, dtype=torch.float64)
    fft = torch.fft
    check(lambda z: fft.fft(z, norm=norm), x)
    check(lambda z: fft.ifft(z, dim=1, norm=norm), x)
    check(lambda z: fft.fft2(z, norm=norm, dim=(0, 2)), x.transpose(0, 3))
    check(lambda z: fft.fftn(z, norm=norm), x)
    check(lambda z: fft.rfft(z, norm=norm), real)
    check(lambda z: fft.rfft(z, dim=0, norm=norm), real.transpose(0, 2))
    check(lambda z: fft.rfftn(z, norm=norm), real)
    check(lambda z: fft.fft(z, norm=norm), real)
    check(lambda z: fft.irfft(z, n=8, norm=norm), x)
    check(lambda z: fft.irfftn(z, norm=norm), x)
    check(lambda z: fft.hfft(z, norm=norm), x)
    check(lambda z: fft.ihfft(z, norm=norm), real)


def test_transforms_of_many_dimensions(cupy):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 2, 3, 4, dtype=torch.complex128)
    check(torch.fft.fftn, x)
    check(lambda z: torch.fft.fftn(z, dim=(0, 1, 2, 3)), x)
    check(torch.fft.rfftn, x.real)
    check(torch.fft.irfftn, x)


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
