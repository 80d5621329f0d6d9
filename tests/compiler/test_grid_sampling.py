"""`grid_sample` in compiled functions: one kernel each for the operator and its gradients."""

from __future__ import annotations

from itertools import product

import pytest

import flambeau as torch
from flambeau.nn import functional as F

MODES = list(product(("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (False, True)))


def _operands(rank: int = 2, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    image = torch.rand(2, 3, *(5, 4, 6)[:rank], generator=generator, dtype=dtype)
    grid = torch.rand(2, *(3, 7, 2)[:rank], rank, generator=generator, dtype=dtype) * 3 - 1.5
    return image.requires_grad_(), grid.requires_grad_()


def _gradients(mode: str, padding: str, align: bool):
    def step(image, grid):
        result = F.grid_sample(image, grid, mode=mode, padding_mode=padding, align_corners=align)
        return result, *torch.autograd.grad((result * result).sum(), [image, grid], materialize_grads=True)

    return step


@pytest.mark.parametrize(("mode", "padding", "align"), MODES)
def test_operator_and_gradients_are_kernels(mode: str, padding: str, align: bool):
    image, grid = _operands()
    step = _gradients(mode, padding, align)
    expected, compiled = step(image, grid), torch.compile(step)
    for _ in range(3):
        torch.testing.assert_close(compiled(image, grid), expected)
    kernels = torch.compile.explain(step)(image, grid).kernels
    assert sum(kernel.splitlines()[0].endswith("grid_sample") for kernel in kernels) == (2 if mode == "nearest" else 3)


def test_volumes_in_float64():
    image, grid = _operands(3, torch.float64)
    step = _gradients("bilinear", "zeros", False)
    compiled = torch.compile(step)
    for _ in range(3):
        torch.testing.assert_close(compiled(image, grid), step(image, grid))


def test_gradients_outside_of_the_function():
    image, grid = _operands()
    sample = lambda image, grid: F.grid_sample(image, grid, align_corners=False).tanh()
    expected = torch.autograd.grad(sample(image, grid).sum(), [image, grid])
    compiled = torch.compile(sample)
    for _ in range(4):
        torch.testing.assert_close(torch.autograd.grad(compiled(image, grid).sum(), [image, grid]), expected)


def test_second_derivatives_within_the_function():
    image, grid = _operands(dtype=torch.float64)

    def second(image, grid):
        y = F.grid_sample(image, grid, mode="bicubic", align_corners=False)
        first = torch.autograd.grad(y.square().sum(), [image, grid], create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in first), [image, grid])

    expected, compiled = second(image, grid), torch.compile(second)
    for _ in range(3):
        torch.testing.assert_close(compiled(image, grid), expected)


def test_per_sample_gradients():
    image, grid = _operands()

    def loss(image, grid):
        return F.grid_sample(image[None], grid[None], align_corners=False).square().sum()

    per_sample = torch.func.vmap(torch.func.grad(loss, argnums=(0, 1)))
    expected, compiled = per_sample(image, grid), torch.compile(per_sample)
    for _ in range(3):
        torch.testing.assert_close(compiled(image, grid), expected)


def test_permuted_operands():
    image, grid = _operands()
    image, grid = image.detach().transpose(2, 3), grid.detach().transpose(1, 2)
    sample = lambda image, grid: F.grid_sample(image, grid, align_corners=True)
    compiled = torch.compile(sample)
    for _ in range(3):
        torch.testing.assert_close(compiled(image, grid), sample(image, grid))
