"""Strides of elementwise results: the operands decide as in PyTorch."""

from __future__ import annotations

import random
from typing import Any

import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

_LAYOUT_CALLS = (
    lambda m, x, y: x + y, lambda m, x, y: m.eq(x, y), lambda m, x, y: x * 2, lambda m, x, y: m.where(x > y, x, y),
    lambda m, x, y: m.exp(x), lambda m, x, y: m.add(x, y, out=m.empty(0, dtype=x.dtype)),
    lambda m, x, y: x.add(y, alpha=2),
    lambda m, x, y: m.nn.functional.leaky_relu(x), lambda m, x, y: m.exp(x, out=m.empty(0, dtype=x.dtype)))


def _operand(r: random.Random, m: Any, full: list[int]) -> Any:
    """A permuted, sliced, broadcast or channels-last tensor; the same for each library from the same `r`."""
    shape = [1 if r.random() < 0.2 else n for n in full[r.choice([0, 0, 0, 1]):]]
    order = list(range(len(shape)))
    if r.random() < 0.6:
        r.shuffle(order)
    step, channels_last = r.choice([1, 1, 2]), r.random() < 0.3
    x = m.ones([shape[order.index(i)] * step for i in range(len(shape))])
    x = x[tuple(slice(None, None, step) for _ in shape)].permute(order)
    return x.contiguous(memory_format=m.channels_last) if channels_last and len(shape) == 4 else x


@pytest.mark.parametrize("seed", range(6))
def test_strides_of_elementwise_results(seed: int) -> None:
    r = random.Random(seed)
    for _ in range(60):
        full = [r.choice([1, 2, 3, 4]) for _ in range(r.choice([2, 3, 3, 4]))]
        state, found = r.getstate(), []
        for m in (torch, flambeau):
            r.setstate(state)
            x, y = _operand(r, m, full), _operand(r, m, full)
            dtype = getattr(m, r.choice(["float32", "float64", "float16", "int64", "complex64"]))
            call = r.choice(_LAYOUT_CALLS[:4] if dtype.is_complex or dtype is m.int64 else _LAYOUT_CALLS)
            if dtype.is_complex and call is _LAYOUT_CALLS[3]:
                call = _LAYOUT_CALLS[0]
            result = call(m, x.to(dtype), y.to(dtype))
            found.append((x.stride(), y.stride(), dtype.itemsize, tuple(result.shape), result.stride()))
        assert found[0] == found[1]


@pytest.mark.parametrize("n", [4, 200])
def test_the_first_operand_decides_where_layouts_differ(n: int) -> None:
    x, y = flambeau.ones(n, n), flambeau.ones(n, n).t()
    assert (x + y).stride() == (n, 1)
    assert (y + x).stride() == (1, n)
    assert (y * x).add_(1).equal(flambeau.full((n, n), 2.0))
