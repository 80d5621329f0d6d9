"""Kernels of `grid_sample`: PyTorch's bits in all modes, threads, strides and positions far outside."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as fb
from flambeau import codegen
from flambeau.codegen.llvm.vectors import host_has_fma

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.skipif(not codegen.available(), reason="kernels cannot be compiled")]

# each mode and each padding of both ranks, and both ways of aligning: every case compiles two or three kernels
MODES = [(2, "bilinear", "zeros", False), (2, "bilinear", "border", True), (2, "bilinear", "reflection", False),
         (2, "nearest", "zeros", True), (2, "bicubic", "zeros", False), (2, "bicubic", "reflection", True),
         (3, "bilinear", "zeros", True), (3, "bilinear", "reflection", False), (3, "nearest", "border", True)]
SHAPES = {2: ((2, 3, 9, 13), (2, 11, 17, 2)), 3: ((2, 3, 5, 6, 7), (2, 3, 4, 7, 3))}


def _both(image, grid, cotangent, *modes):
    """Result and gradients of both libraries, as arrays."""
    results = []
    for library in (torch, fb):
        x, g = (library.tensor(a, requires_grad=True) for a in (image, grid))
        out = library.nn.functional.grid_sample(x, g, *modes)
        gradients = library.autograd.grad(out, (x, g), library.tensor(cotangent))
        results.append([t.detach().numpy() for t in (out, *gradients)])
    return results


@pytest.mark.parametrize(("rank", "mode", "padding", "align"), MODES)
def test_results_and_gradients_have_pytorchs_bits(rank, mode, padding, align):
    random = np.random.default_rng(0)
    (n, c, *sizes), points = SHAPES[rank]
    dtype = np.float32 if align else np.float64
    image, cotangent = (random.standard_normal((n, c, *s)).astype(dtype) for s in (sizes, points[1:-1]))
    grid = random.uniform(-1.3, 1.3, points).astype(dtype)
    grid[0, 0, 0] = 7.25
    fused = torch.backends.cpu.get_cpu_capability().startswith("AVX") and host_has_fma()
    for expected, found in zip(*_both(image, grid, cotangent, mode, padding, align), strict=True):
        if fused:
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_infinite_and_nan_positions(mode):
    image, grid = np.ones((1, 2, 4, 16), np.float32), np.zeros((1, 4, 64, 2), np.float32)
    grid[0, 0, :4, 0] = np.nan, np.inf, -np.inf, 1e30
    for padding in ("zeros", "border", "reflection"):
        expected, found = (library.nn.functional.grid_sample(library.tensor(image), library.tensor(grid), mode, padding,
                                                             False).numpy() for library in (torch, fb))
        np.testing.assert_array_equal(found, expected, padding)


def test_strided_inputs_of_float16_and_threads():
    random = np.random.default_rng(1)
    image = random.standard_normal((3, 20, 24, 6)).astype(np.float32)
    grid = random.uniform(-1.1, 1.1, (2, 3, 30, 40)).astype(np.float32)
    results = []
    for library in (torch, fb):
        x, g = library.tensor(image).permute(0, 3, 1, 2), library.tensor(grid).permute(1, 2, 3, 0)
        results.append([library.nn.functional.grid_sample(x.to(getattr(library, dtype)), g.to(getattr(library, dtype)),
                                                          align_corners=False) for dtype in ("float32", "float16")])
    (expected, half), (found, half_found) = results
    assert found.stride() == expected.stride()
    np.testing.assert_array_equal(found.numpy(), expected.numpy())
    np.testing.assert_allclose(half_found.numpy(), half.numpy(), atol=0.1)


def test_second_derivatives_find_the_taps_again():
    x = fb.randn(2, 3, 12, 12, dtype=fb.float64, requires_grad=True)
    grid = (fb.rand(2, 4, 5, 2, dtype=fb.float64) * 1.6 - 0.8).requires_grad_()
    for mode in ("bilinear", "bicubic"):
        def sample(x, g, mode=mode):
            return fb.nn.functional.grid_sample(x, g, mode, align_corners=True)

        assert fb.autograd.gradcheck(sample, (x, grid), fast_mode=True)
        assert fb.autograd.gradgradcheck(sample, (x, grid), fast_mode=True)
