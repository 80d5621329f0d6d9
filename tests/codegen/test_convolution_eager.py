"""Eager convolutions and poolings of any size by kernels, compared with PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau.backends.compiled.families import convolution, pooling

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True, params=["kernels", "numpy"])
def way(monkeypatch, request):
    """Kernels for arrays of all sizes, and for none."""
    for module, threshold in ((convolution, "MIN_MULTIPLICATIONS"), (pooling, "MIN_ELEMENTS")):
        module._kernels()
        monkeypatch.setattr(module, threshold, [0 if request.param == "kernels" else 1 << 60])


def beside(program: Any, *shapes: tuple[int, ...], last: bool = False, dtype: str = "float32",
           tolerance: float = 2e-5) -> None:
    """Values, layouts and gradients of a function of (library, tensors)."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in shapes]
    found = []
    for library in (flambeau, torch):
        inputs = []
        for array in arrays:
            x = library.tensor(array, dtype=getattr(library, dtype))
            if last and x.ndim == 4:
                x = x.to(memory_format=library.channels_last)
            inputs.append(x.requires_grad_())
        outputs = program(library, *inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        total = sum((y.to(library.float64) * (1 + y.detach().to(library.float64).cos())).sum()
                    for y in outputs if y.is_floating_point())
        gradients = library.autograd.grad(total, inputs)
        found.append(([(y.shape, y.stride(), y.detach().to(library.float64).numpy()) for y in outputs],
                      [g.to(library.float64).numpy() for g in gradients]))
    for (shape, stride, mine), (its_shape, its_stride, its) in zip(found[0][0], found[1][0], strict=True):
        assert tuple(shape) == tuple(its_shape)
        assert tuple(stride) == tuple(its_stride)
        np.testing.assert_allclose(mine, its, rtol=tolerance, atol=tolerance * 10)
    for mine, its in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_allclose(mine, its, rtol=tolerance, atol=tolerance * max(1.0, abs(its).max()) * 5)


@pytest.mark.parametrize("last", [False, True])
def test_conv2d(last):
    beside(lambda t, x, w, b: t.nn.functional.conv2d(x, w, b, 2, 1), (2, 6, 9, 10), (8, 6, 3, 3), (8,),
           last=last)


@pytest.mark.parametrize("last", [False, True])
def test_pointwise_and_depthwise(last):
    beside(lambda t, x, w, v: t.nn.functional.conv2d(t.nn.functional.conv2d(x, w), v, None, 1, 1, 1, 20),
           (2, 6, 9, 10), (20, 6, 1, 1), (20, 1, 3, 3), last=last)


def test_channels_last_weights():
    beside(lambda t, x, w: t.nn.functional.conv2d(x, w.to(memory_format=t.channels_last), None, 2, 1),
           (2, 6, 9, 10), (20, 6, 3, 3))
    beside(lambda t, x, w: t.nn.functional.conv_transpose2d(x, w.to(memory_format=t.channels_last)),
           (2, 6, 9, 10), (6, 20, 3, 3))


def test_conv1d_and_conv3d():
    beside(lambda t, x, w, b: t.nn.functional.conv1d(x, w, b, 2, 3, 2, 2), (2, 6, 40), (8, 3, 5), (8,))
    beside(lambda t, x, w: t.nn.functional.conv3d(x, w, None, 1, 1), (2, 3, 5, 6, 7), (4, 3, 3, 3, 3))


@pytest.mark.parametrize("last", [False, True])
def test_conv_transpose2d(last):
    beside(lambda t, x, w, b: t.nn.functional.conv_transpose2d(x, w, b, 2, 1, 1), (2, 6, 7, 8), (6, 5, 3, 3), (5,),
           last=last)


def test_narrow_floats_and_float64():
    beside(lambda t, x, w: t.nn.functional.conv2d(x, w), (2, 6, 9, 10), (8, 6, 3, 3), dtype="float64", tolerance=1e-12)
    beside(lambda t, x, w: t.nn.functional.conv2d(x, w), (2, 6, 9, 10), (8, 6, 3, 3), dtype="bfloat16", tolerance=2e-2)


def test_unbatched_and_expanded():
    beside(lambda t, x, w: t.nn.functional.conv2d(x, w, None, 1, 1), (6, 9, 10), (8, 6, 3, 3))
    beside(lambda t, x, w: t.nn.functional.conv2d(x.expand(3, 6, 9, 10), w).sum(), (1, 6, 1, 10), (8, 6, 3, 3))


def test_second_derivatives():
    def program(t, x, w):
        y = t.nn.functional.conv2d(x, w, None, 2, 1)
        gx, gw = t.autograd.grad((y * y * y).sum(), (x, w), create_graph=True)
        return gx, gw

    beside(program, (2, 4, 7, 8), (5, 4, 3, 3), tolerance=1e-4)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("how", [((2, 2), None, 0, 1, False), (3, 2, 1, 1, False), ((3, 2), (2, 1), (1, 0), 1, True)])
def test_max_pool2d(how, last):
    beside(lambda t, x: t.nn.functional.max_pool2d(x, *how, return_indices=True), (2, 5, 11, 12), last=last)


@pytest.mark.parametrize("last", [False, True])
def test_avg_pool2d(last):
    beside(lambda t, x: t.nn.functional.avg_pool2d(x, 3, 2, 1, True, False), (2, 5, 11, 12), last=last)
    beside(lambda t, x: t.nn.functional.avg_pool2d(x, 2, divisor_override=3), (2, 5, 11, 12), last=last)


def test_other_ranks_and_adaptive():
    beside(lambda t, x: t.nn.functional.max_pool1d(x, 3, 2, 1), (2, 5, 31))
    beside(lambda t, x: t.nn.functional.avg_pool3d(x, 2), (2, 3, 6, 7, 8))
    beside(lambda t, x: t.nn.functional.max_pool3d(x, 2), (3, 6, 7, 8))
    beside(lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, (3, 4)), (2, 5, 11, 12))
    beside(lambda t, x: t.nn.functional.adaptive_max_pool2d(x, (3, 4)), (2, 5, 11, 12))


def test_training_equals_pytorch():
    """Some steps of a small network of convolutions, by kernels and by PyTorch."""
    found = []
    for t in (flambeau, torch):
        t.manual_seed(3)
        net = t.nn.Sequential(t.nn.Conv2d(1, 8, 3), t.nn.ReLU(), t.nn.MaxPool2d(2), t.nn.Conv2d(8, 16, 3, padding=1),
                              t.nn.ReLU(), t.nn.AdaptiveAvgPool2d(1), t.nn.Flatten(), t.nn.Linear(16, 4))
        optimizer = t.optim.SGD(net.parameters(), lr=0.5)
        x, y = t.randn(16, 1, 12, 12), t.arange(16) % 4
        losses = []
        for _ in range(8):
            optimizer.zero_grad()
            loss = t.nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        found.append(losses)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4)
