"""Composite operators as programs against NumPy, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau.backends.compiled import thresholds

F = torch.nn.functional
CASES: dict[str, Any] = {
    "glu": lambda x, y: F.glu(x, 1), "glu of rows": lambda x, y: F.glu(x, 0),
    "logits": lambda x, y: F.binary_cross_entropy_with_logits(x, y),
    "weighted logits": lambda x, y: F.binary_cross_entropy_with_logits(
        x, y, weight=y.detach(), pos_weight=y[0].detach(), reduction="sum"),
    "logits by themselves": lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="none"),
    "smooth l1": lambda x, y: F.smooth_l1_loss(x, y, beta=0.5), "huber": lambda x, y: F.huber_loss(x, y, delta=0.3),
}
LAYOUTS: dict[str, Any] = {
    "rows": lambda x: x, "columns": lambda x: x.T, "every other": lambda x: x[:, ::2],
    "broadcast": lambda x: x[:1].expand(80, -1),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_equals_numpy(name: str, layout: str, dtype: Any) -> None:
    torch.manual_seed(0)
    leaves = [torch.randn(80, 80, dtype=dtype).requires_grad_(), torch.rand(80, 80, dtype=dtype).requires_grad_()]
    if "logits" in name:
        leaves[1].requires_grad_(False)

    def call() -> list[Any]:
        out = CASES[name](*(LAYOUTS[layout](leaf) for leaf in leaves))
        wanted = [leaf for leaf in leaves if leaf.requires_grad]
        return [out, *torch.autograd.grad(out, wanted, torch.ones_like(out) * 0.5, allow_unused=True)]

    found = call()
    thresholds.pause_kernels()
    try:
        expected = call()
    finally:
        thresholds.resume_kernels()
    close = 1e-5 if dtype is torch.float32 else 1e-12
    for mine, other in zip(found, expected, strict=True):
        if mine is None:
            assert other is None
            continue
        assert mine.dtype is other.dtype
        assert mine.stride() == other.stride()
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), rtol=close, atol=close)
