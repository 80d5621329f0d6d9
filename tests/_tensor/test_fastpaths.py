"""Operators of one input with parameters: the short way gives what the long way does, and hangs the same node on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau._tensor.dispatch.handlers import handlers
from flambeau.ops.declare import REGISTRY

F = torch.nn.functional
CASES: dict[str, Any] = {
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2), "elu": lambda x: F.elu(x, alpha=0.5), "pow": lambda x: x ** 3,
    "clamp": lambda x: x.clamp(-1, 1), "clamp from below": lambda x: x.clamp(min=0.5),
    "pad": lambda x: F.pad(x, (1, 2)),
    "flip": lambda x: x.flip(0), "roll": lambda x: x.roll(1, 0), "tril": lambda x: x.tril(-1), "gelu": F.gelu,
    "repeat": lambda x: x.repeat(2, 1), "glu": lambda x: F.glu(x, 0), "softplus": lambda x: F.softplus(x, 2, 1),
    "sum as float64": lambda x: x.sum(0, dtype=torch.float64), "isnan": torch.isnan, "cumsum": lambda x: x.cumsum(0),
}
LAYOUTS: dict[str, Any] = {
    "rows": lambda x: x, "columns": lambda x: x.T, "every other": lambda x: x[::2],
    "broadcast": lambda x: x[0].expand(4, -1),
    "no rows": lambda x: x[:0],
}


def without_short_ways(call: Any, monkeypatch: Any) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(handlers, "fast_path_of", lambda _: None)
        for op in REGISTRY.values():
            patch.setattr(op, "fast_path", None)
        return call()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", [4, 40])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_as_the_long_way(name: str, layout: str, size: int, dtype: Any, monkeypatch: Any) -> None:
    torch.manual_seed(0)
    leaf = torch.randn(size, size, dtype=dtype).requires_grad_()

    def call() -> tuple[Any, Any, Any]:
        out = CASES[name](LAYOUTS[layout](leaf))
        if not out.requires_grad:
            return out, None, None
        (gradient,) = torch.autograd.grad(out, leaf, torch.ones_like(out))
        return out, out.grad_fn, gradient

    torch.zeros(2000).exp()  # large arrays have been met
    found, node, gradient = call()
    expected, other_node, other_gradient = without_short_ways(call, monkeypatch)
    assert found.dtype is expected.dtype
    assert found.stride() == expected.stride()
    np.testing.assert_array_equal(found.detach().double().numpy(), expected.detach().double().numpy())
    assert (node is None) == (other_node is None)
    if node is not None:
        assert node.name() == other_node.name()
        assert node.consts == other_node.consts
        np.testing.assert_array_equal(gradient.double().numpy(), other_gradient.double().numpy())


def test_what_was_saved_is_watched() -> None:
    x = torch.randn(3, 3, requires_grad=True)
    y = x * 1
    out = F.leaky_relu(y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_a_complex_parameter_promotes() -> None:
    assert (torch.ones(3) ** 2j).dtype is torch.complex64


def test_errors_are_the_long_way_s() -> None:
    with pytest.raises(RuntimeError, match="Halving dimension must be even"):
        F.glu(torch.ones(3))
    with torch.inference_mode():
        assert F.leaky_relu(torch.ones(3)).is_inference()


@pytest.mark.parametrize("scale", [1.0, 0.0, float("nan")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
def test_norms_of_cosines_are_clamped(scale: float, dtype: Any) -> None:
    x = (torch.arange(12.).reshape(3, 4) * scale).to(dtype).requires_grad_()
    y = torch.ones(3, 4, dtype=dtype)
    found = F.cosine_similarity(x, y, eps=0.5)
    norms = [t.detach().double().numpy() for t in (x, y)]
    lengths = [np.maximum(np.sqrt((n * n).sum(1)), 0.5) for n in norms]
    expected = (norms[0] * norms[1]).sum(1) / lengths[0] / lengths[1]
    np.testing.assert_allclose(found.detach().double().numpy(), expected, rtol=1e-2 if dtype is torch.float16 else 1e-6)
    found.sum().backward()
    assert x.grad is not None


def test_chunks_take_numbers_of_any_kind() -> None:
    x = torch.arange(12.).reshape(3, 4)
    for dim in (1, -1, np.int64(1)):
        pieces = x.chunk(2, dim)
        assert isinstance(pieces, tuple)
        assert [tuple(piece.shape) for piece in pieces] == [(3, 2), (3, 2)]
