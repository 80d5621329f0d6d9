"""Compiled programs that lower primitives which no operator's record reaches, compared with eager mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional
RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 5)).astype(np.float32)
ONE = RNG.normal(size=(1, 1)).astype(np.float32)
LOGITS = RNG.normal(size=(4, 5, 3)).astype(np.float32)
WEIGHT = RNG.random(5).astype(np.float32)
ROWS = torch.tensor([[0, 1, 1], [2, 5, 1]])
TARGET = torch.tensor(RNG.integers(0, 5, (4, 3)))


def second(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function's result, and the first and second gradients of its square."""
    def run(x: Any, *args: Any) -> Any:
        y = function(x, *args)
        g, = torch.autograd.grad((y * y).sum(), x, create_graph=True)
        return (y, g, *torch.autograd.grad((g * g).sum(), x))
    return run


CASES: dict[str, tuple[Any, ...]] = {
    "2 ** x": (second(lambda x: 2 ** x), X), "3.5 ** x": (second(lambda x: 3.5 ** x), X),
    "x ** -1": (lambda x: x ** -1, X), "x ** -2": (lambda x: x ** -2, X),
    "x ** -0.5": (lambda x: x.abs() ** -0.5 + x.abs() ** 2.5, X),
    "embedding": (second(lambda x: F.embedding(ROWS, x, padding_idx=1)), X),
    "embedding by frequency": (second(lambda x: F.embedding(ROWS, x, scale_grad_by_freq=True)), X),
    "max along": (second(lambda x: x.max(1)[0]), X), "sort": (second(lambda x: x.sort(1)[0]), X),
    "median": (second(lambda x: x.median(1)[0]), X), "topk": (second(lambda x: x.topk(2, 1)[0]), X),
    "cummax": (second(lambda x: x.cummax(1)[0]), X), "cumprod": (second(lambda x: x.cumprod(1)), X),
    "prod": (second(lambda x: x.prod(1)), X), "prod of a scalar": (second(lambda x: x.sum().prod()), X),
    "cdist": (second(lambda x: torch.cdist(x, x.flip(0) + 1)), X),
    "to with memory_format": (lambda x: x.reshape(1, 2, 3, 5).to(torch.float64, memory_format=torch.channels_last), X),
    "to contiguous": (lambda x: x.t().to(torch.float64, memory_format=torch.contiguous_format), X),
    "cov": (second(lambda x: x.cov()), X), "acosh": (second(lambda x: (x.abs() + 1.5).acosh()), X),
    "sum_to_size": (second(lambda x: (x * x).sum_to_size(1, 5)), X),
    # a reduction of one element that is no reshape, as its dtype differs, and elements of the same size after it
    "any of one": (lambda x: x.any().float() * 2 + x.all() + x * 3, ONE),
    "any of one between": (lambda x: (x.sin().any(1, keepdim=True).float() * x.sin(), x.sin() * 2), ONE),
    "argmax of one": (lambda x: x.sin().argmax(1).float() + x.sin(), ONE),
    "weighted nll_loss": (second(lambda x, w: F.nll_loss(x, TARGET, weight=w, ignore_index=2)), LOGITS, WEIGHT),
    "weighted cross_entropy": (second(lambda x, w: F.cross_entropy(x, TARGET, weight=w)), LOGITS, WEIGHT),
    "weighted cross_entropy, none": (second(lambda x, w: F.cross_entropy(x, TARGET, weight=w, reduction="none")),
                                     LOGITS, WEIGHT),
    # kernels are paused while it is traced, except for special functions of large arrays
    "erf of many": (lambda x: torch.erf(x) + torch.erfc(x) * torch.erfinv(x * 0.1), np.tile(X, (5000, 1))),
    "NumPy scalar": (lambda x: x + np.float64(3), X),
}


@pytest.mark.parametrize("name", CASES)
def test_compiled_equals_eager(name: str) -> None:
    function, first, *others = CASES[name]
    inputs = [torch.tensor(first, requires_grad=True), *map(torch.tensor, others)]
    expected = function(*inputs)
    compiled = torch.compile(function)
    for _ in range(3):
        result = compiled(*inputs)
    for x, y in zip(*((r if isinstance(r, tuple) else (r,)) for r in (result, expected)), strict=True):
        assert x.dtype is y.dtype
        assert x.stride() == y.stride()
        np.testing.assert_allclose(x.detach(), y.detach(), rtol=1e-4, atol=1e-5)
