"""Complex numbers on devices, computed by kernels of pairs of real numbers, against the CPU."""

from __future__ import annotations

import math
from typing import Any

import pytest

import flambeau as torch
from flambeau import codegen
from flambeau._tensor.accelerated import host_copies
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


@pytest.fixture(scope="module")
def cupy():
    with cupy_devices() as module:
        yield module


def agree(function: Any, *args: Any, tolerance: float = 1e-12) -> None:
    """Compare a function's results with the CPU's; the host must compute nothing."""
    expected = function(*args)
    moved = [x.cuda() if isinstance(x, torch.Tensor) else x for x in args]
    host_copies.computed.clear()
    found = function(*moved)
    assert not host_copies.computed
    assert found.is_cuda
    assert found.stride() == expected.stride()
    torch.testing.assert_close(found.cpu(), expected, rtol=tolerance, atol=tolerance, equal_nan=True)


def plane(dtype: Any = torch.complex128) -> Any:
    """Numbers of all quadrants, on both axes, small, large and near 1."""
    parts = [0.0, 1e-3, 0.5, 1.0, 1.0 + 1e-7, 2.0, 30.0, -1e-3, -0.5, -1.0, -2.0, -30.0]
    return torch.tensor([complex(a, b) for a in parts for b in parts], dtype=dtype)


@pytest.mark.parametrize("name", [
    "exp", "log", "log1p", "expm1", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh",
    "asin", "acos", "atan", "asinh", "acosh", "atanh", "abs", "angle", "sgn", "reciprocal", "sigmoid", "conj_physical",
    "square", "exp2"])
def test_functions(cupy, name):
    z = plane()
    if name in ("log", "log2", "log10", "rsqrt", "reciprocal"):
        z = z[z != 0]
    elif name in ("log1p",):
        z = z[z != -1]
    elif name == "atanh":
        z = z[(z != 1) & (z != -1)]
    elif name == "atan":
        z = z[(z != 1j) & (z != -1j)]
    elif name in ("sigmoid",):
        z = z[z.real > -20]
    agree(getattr(torch, name), z, tolerance=1e-9)


def test_arithmetic(cupy):
    z = plane()
    w = z.flip(0) + 0.5
    for function in (torch.add, torch.sub, torch.mul, torch.div, torch.pow, torch.eq, torch.ne):
        agree(function, z[z != 0], w[z != 0], tolerance=1e-9)
    for number in (2, 2.5, 1j, 1 - 2j):
        agree(lambda x, n=number: x * n + n, z)
        agree(lambda x, n=number: x / n, z)
    for exponent in (2, 3, 0.5, -1, -2, 4, 1.5 + 1j):
        agree(lambda x, e=exponent: x ** e, z[z != 0], tolerance=1e-9)
    agree(lambda x, y: x * y, z, torch.arange(1.0, 1 + len(z)))
    agree(lambda x: x * 1j, torch.arange(4.0))
    agree(lambda x: torch.where(x.real > 0, x, 0), z)
    agree(lambda x: torch.isfinite(x) & ~torch.isnan(x), z)


def test_division_does_not_overflow(cupy):
    z = torch.tensor([1e30 + 1e30j, 1e-30 + 1e-30j, 3e38 + 0j], dtype=torch.complex64)
    agree(lambda x: x / x, z, tolerance=1e-6)
    agree(torch.abs, z, tolerance=1e-6)


def test_infinities(cupy):
    inf = math.inf
    z = torch.tensor([complex(inf, 0), complex(-inf, 0), complex(0, inf), complex(1, -inf), complex(-inf, 1)])
    agree(torch.abs, z, tolerance=1e-6)
    agree(torch.isinf, z)
    agree(torch.sqrt, z, tolerance=1e-6)
    agree(torch.exp, z[:2], tolerance=1e-6)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_layouts_and_reductions(cupy, dtype):
    torch.manual_seed(0)
    z = torch.randn(3, 4, 5, dtype=dtype)
    tolerance = 1e-5 if dtype is torch.complex64 else 1e-12
    for function in (
            lambda x: x.sum(1), lambda x: x.mean((0, 2)), lambda x: x.prod(1), lambda x: x.var(2), lambda x: x.norm(),
            lambda x: x.cumsum(1), lambda x: x.cumprod(2), lambda x: torch.logsumexp(x, 0), lambda x: x.any(1),
            lambda x: torch.cat([x, x * 2], 1), lambda x: x.transpose(0, 2) * 2, lambda x: x[:, 1::2] + 1,
            lambda x: x.flip(1), lambda x: x.roll(1, 2), lambda x: torch.tril(x), lambda x: x.permute(2, 0, 1).clone(),
            lambda x: x[1].t().contiguous(), lambda x: torch.nn.functional.pad(x, (1, 2)), lambda x: x.real * x.imag,
            lambda x: torch.view_as_real(x) + 1, lambda x: torch.view_as_complex(torch.view_as_real(x) * 2),
            lambda x: x.to(torch.complex128), lambda x: x.conj() * x, lambda x: x.mH @ x,
            lambda x: torch.complex(x.real, -x.imag), lambda x: torch.polar(x.abs(), x.angle()),
            lambda x: x.index_select(1, torch.tensor([2, 0], device=x.device)), lambda x: x[0] @ x[0].mH,
            lambda x: torch.gather(x, 1, torch.zeros(3, 2, 5, dtype=torch.int64, device=x.device))):
        agree(function, z, tolerance=tolerance)


def test_writes(cupy):
    def written(x: Any) -> Any:
        y = torch.zeros_like(x)
        y.copy_(x)
        y.mul_(2 - 1j).add_(x, alpha=3)
        y[1] = x[0]
        y.real.fill_(1)
        return y.fill_(2j) + y

    agree(written, torch.randn(3, 4, dtype=torch.complex64), tolerance=1e-5)


def test_gradients(cupy):
    torch.manual_seed(0)
    z = torch.randn(4, dtype=torch.complex128)

    def gradient(x: Any) -> Any:
        x = x.detach().requires_grad_()
        (torch.exp(x) * x.conj() / (x + 3) + torch.sqrt(x)).abs().sum().backward()
        return x.grad

    agree(gradient, z, tolerance=1e-9)


def test_another_number_is_no_other_program(cupy):
    from flambeau._tensor.accelerated import operator_programs

    z = torch.ones(4, dtype=torch.complex64, device="cuda")
    z * 1j
    before = len(operator_programs._programs)
    assert (z * (2 + 3j)).tolist() == [2 + 3j] * 4
    assert len(operator_programs._programs) == before


def test_results_are_written_as_pairs_by_one_kernel(cupy):
    from flambeau._tensor.accelerated import operator_programs

    z, w = (torch.randn(3, 4, dtype=torch.complex64) for _ in range(2))
    operator_programs.clear()
    agree(lambda x, y: (x * y).exp() / y, z, w, tolerance=1e-5)
    agree(lambda x, y: x.clone().mul_(y).sin_(), z, w, tolerance=1e-5)
    programs = [each.program.program for each in operator_programs._programs.values() if each is not None]
    assert [len(each.launches) for each in programs] == [1] * len(programs)
    assert not any(each.schedule.deferred_copies for each in programs)
