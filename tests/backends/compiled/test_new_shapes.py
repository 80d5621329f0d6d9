"""Small arrays that broadcast to large results: thresholds count the result's elements."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau.backends.compiled import thresholds
from flambeau.backends.compiled.elementwise import ElementwiseKernel

#: pairs of shapes of fewer than a thousand elements that broadcast to more
PAIRS = [((60, 1), (1, 70)), ((60, 1), (70,)), ((70,), (60, 1)), ((8, 1, 30), (1, 20, 30)), ((8, 1, 30), (20, 1)),
         ((64, 1), (1, 64))]


@pytest.fixture
def runs(monkeypatch):
    """From a thousand elements on arrays run on kernels; the shapes that they had."""
    seen = []
    call = ElementwiseKernel.__call__

    def watched(self, arrays, numbers=()):
        seen.append([x.shape for x in arrays])
        return call(self, arrays, numbers)

    monkeypatch.setattr(ElementwiseKernel, "__call__", watched)
    before = thresholds.set_thresholds(1000)
    yield seen
    thresholds.restore_thresholds(before)


def array(shape, dtype=np.float32, seed=0):
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def of(f, *inputs):
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    out = f(*leaves)
    out.backward(array(tuple(out.shape), seed=5).to(out.dtype))
    return [out.detach(), *(x.grad for x in leaves)]


@pytest.mark.parametrize("shapes", PAIRS, ids=str)
@pytest.mark.parametrize("f", [torch.add, torch.mul, torch.maximum, torch.div, torch.hypot], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_two_inputs(impls, runs, shapes, f, dtype):
    x, y = (array(shape, dtype, i) for i, shape in enumerate(shapes))
    expected = impls.numpy(lambda: of(f, x, y))
    for _ in range(3):
        found = of(f, x, y)
    assert list(shapes) in [each[:2] for each in runs]
    for a, b in zip(expected, found, strict=True):
        assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-5, atol=1e-5)


def test_three_inputs_and_two_dtypes(impls, runs):
    x, y, c = array((60, 1)), array((1, 70)), array((60, 1)) > 0
    for f in (lambda: torch.where(c, x, y), lambda: torch.where(c, x.double(), y), lambda: x + y.double(),
              lambda: x.long() + y.long(), lambda: x.half() * y.half(), lambda: torch.lerp(x, y, 0.25)):
        expected, found = impls.numpy(f), f()
        assert (expected.dtype, expected.shape, expected.stride()) == (found.dtype, found.shape, found.stride())
        np.testing.assert_allclose(found.double().numpy(), expected.double().numpy(), rtol=1e-6)
    assert runs


def test_shapes_that_do_not_fit(runs):
    for _ in range(2):
        (array((60, 1)) * array((1, 70)))
        with pytest.raises(RuntimeError, match="The size of tensor a"):
            array((60, 1)) * array((2, 30, 70))
