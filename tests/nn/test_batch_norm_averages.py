"""Batch norm with running averages as a known call: outputs, averages, gradients and nodes of the general path."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau._tensor.fastpath.repeated_layouts import CALLS, PROOFS
from flambeau.backends.compiled import enable_kernels
from flambeau.backends.compiled.thresholds import SMALL_KERNELS

pytestmark = pytest.mark.skipif(not codegen.available(), reason="no generated code")
SHAPES = {"rows": (4, 6), "images": (2, 3, 5, 5), "sequences": (3, 4, 40), "many": (8, 16, 12, 12)}


def training(shape, known, **options):
    """Everything that training observes, step by step."""
    rng = np.random.default_rng(0)
    kind = {2: torch.nn.BatchNorm1d, 3: torch.nn.BatchNorm1d, 4: torch.nn.BatchNorm2d}[len(shape)]
    module, found = kind(shape[1], **options), []
    for step in range(CALLS + PROOFS + 10):
        x = torch.from_numpy(rng.standard_normal(shape).astype(np.float32) * 3 + 1).requires_grad_(step % 3 > 0)
        SMALL_KERNELS[0] = known
        try:
            out = module(x)
        finally:
            SMALL_KERNELS[0] = True
        module.zero_grad()
        if out.requires_grad:
            out.backward(torch.from_numpy(rng.standard_normal(shape).astype(np.float32)))
        found.append([type(out.grad_fn).__name__, out.detach().numpy().tobytes(), *(
            each.numpy().tobytes() for each in module.buffers()), *(
            each.grad.numpy().tobytes() for each in (x, *module.parameters()) if each.grad is not None)])
    return found


@pytest.mark.parametrize("options", [{}, {"affine": False}, {"momentum": None}, {"momentum": 0.3, "eps": 1e-3}])
@pytest.mark.parametrize("name", SHAPES)
def test_bits(name, options):
    enable_kernels()
    assert training(SHAPES[name], True, **options) == training(SHAPES[name], False, **options)


def test_averages_in_evaluation_and_without_gradients():
    enable_kernels()
    module = torch.nn.BatchNorm1d(4)
    x = torch.arange(12.0).view(3, 4)
    for _ in range(CALLS + PROOFS + 5):
        module(x)
    before = module.running_mean.clone()
    with torch.no_grad():
        module(x)
    assert not torch.equal(module.running_mean, before)
    module.eval()
    before = module.running_mean.clone()
    module(x)
    assert torch.equal(module.running_mean, before)


def test_errors():
    module = torch.nn.BatchNorm1d(4)
    with pytest.raises(RuntimeError, match="running_mean should contain 3 elements not 4"):
        module(torch.ones(2, 3))
    module.running_mean.requires_grad_()
    with pytest.raises(RuntimeError, match="not differentiable with respect to argument 'running_mean'"):
        module(torch.ones(2, 4))
