"""Factorizations and solutions of small matrices by launches: the same bits and strides as before, the same errors."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")

CALLS = {
    "cholesky": lambda a, b: torch.linalg.cholesky(a),
    "cholesky, upper": lambda a, b: torch.linalg.cholesky(a, upper=True),
    "inv": lambda a, b: torch.linalg.inv(a),
    "solve": lambda a, b: torch.linalg.solve(a, b),
    "solve, right": lambda a, b: torch.linalg.solve(a, b.mT, left=False),
    "solve, vector": lambda a, b: torch.linalg.solve(a, b[..., 0]),
    "lower": lambda a, b: torch.linalg.solve_triangular(a, b, upper=False),
    "upper": lambda a, b: torch.linalg.solve_triangular(a, b, upper=True),
    "upper, ones": lambda a, b: torch.linalg.solve_triangular(a, b, upper=True, unitriangular=True),
    "q": lambda a, b: torch.linalg.qr(a).Q,
    "r of a tall one": lambda a, b: torch.linalg.qr(a[..., :2]).R,
    "r, complete": lambda a, b: torch.linalg.qr(a[..., :2], mode="complete").R,
}
SHAPES = {"one": (1, 1), "single": (4, 4), "batched": (2, 3, 5, 5), "none": (0, 4, 4)}


@pytest.fixture(autouse=True)
def _kernels_are_loaded():
    torch.ones(2000).exp()


def _inputs(shape, dtype, transposed=False):
    random = np.random.default_rng(3).standard_normal(shape)
    a = torch.tensor(random @ random.swapaxes(-1, -2) + np.eye(shape[-1]), dtype=dtype)
    return a.mT.clone().mT if transposed else a, torch.tensor(random, dtype=dtype)[..., :2]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_repeated_calls_keep_bits_and_strides(name, shape, dtype, transposed):
    a, b = _inputs(SHAPES[shape], dtype, transposed)
    first = CALLS[name](a, b)
    for _ in range(40):
        last = CALLS[name](a, b)
        assert (last.shape, last.stride(), last.dtype) == (first.shape, first.stride(), first.dtype)
        assert last.numpy().tobytes() == first.numpy().tobytes()


@pytest.mark.parametrize("shape", ["single", "batched"])
def test_failures_raise_after_repeated_calls(shape):
    a, b = _inputs(SHAPES[shape], torch.float32)
    zero = torch.zeros(SHAPES[shape])
    calls = (("cholesky", -a, "not positive-definite"), ("inv", zero, "singular"), ("solve", zero, "singular"))
    for name, bad, text in calls:
        for _ in range(40):
            CALLS[name](a, b)
        with pytest.raises(torch.linalg.LinAlgError, match=text):
            CALLS[name](bad, b)
    for _ in range(40):
        torch.linalg.solve_triangular(a, b, upper=True)
    assert torch.linalg.solve_triangular(zero, torch.ones_like(b), upper=True).isinf().any()


def test_gradients_after_repeated_calls():
    a, b = _inputs((4, 4), torch.float32)
    for name in ("cholesky", "inv", "solve", "lower", "q"):
        leaf = a.clone().requires_grad_()
        gradients = []
        for _ in range(40):
            leaf.grad = None
            CALLS[name](leaf, b).sum().backward()
            gradients.append(leaf.grad.clone())
        assert all(torch.equal(each, gradients[0]) for each in gradients)
