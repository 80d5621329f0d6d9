from __future__ import annotations

import itertools

import numpy as np
import pytest

from flambeau import dtypes
from flambeau.kernels import convolution, small_convolution
from flambeau.kernels.convolution import (
    conv_forward,
    conv_input_grad,
    conv_weight_grad,
    output_size,
    transposed_output_size,
)
from flambeau.ops.neural.convolution import Geometry

torch = pytest.importorskip("torch")
F = torch.nn.functional

CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}

CASES = [
    # dims, channels, out channels, groups, spatial, kernel, stride, padding, dilation
    (1, 3, 4, 1, (9,), (3,), (1,), (0,), (1,)),
    (1, 4, 6, 2, (10,), (4,), (3,), (2,), (2,)),
    (1, 2, 3, 1, (5,), (5,), (7,), (1,), (1,)),
    (2, 3, 5, 1, (7, 8), (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 3, 5, 1, (7, 8), (3, 2), (2, 3), (1, 0), (1, 2)),
    (2, 4, 8, 4, (6, 6), (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 4, 4, 4, (6, 7), (3, 3), (2, 2), (1, 1), (1, 1)),
    (2, 6, 4, 2, (6, 6), (3, 3), (2, 1), (2, 0), (1, 2)),
    (2, 6, 4, 1, (16, 17), (1, 1), (1, 1), (0, 0), (1, 1)),
    (2, 6, 4, 2, (16, 17), (1, 1), (1, 1), (0, 0), (1, 1)),
    (2, 6, 4, 1, (5, 5), (1, 1), (2, 2), (1, 1), (1, 1)),
    (2, 2, 40, 1, (5, 5), (3, 3), (1, 1), (2, 2), (1, 1)),
    (2, 2, 3, 1, (8, 8), (2, 2), (1, 1), (3, 3), (1, 1)),
    (3, 2, 3, 1, (5, 6, 4), (2, 3, 2), (1, 2, 1), (1, 1, 0), (1, 1, 2)),
    (3, 3, 3, 3, (4, 4, 4), (2, 2, 2), (2, 2, 2), (1, 1, 1), (1, 1, 1)),
]


def arrays(case: tuple, n: int = 3, dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
    _, c, o, groups, spatial, kernel, *_ = case
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((n, c, *spatial)), rng.standard_normal((o, c // groups, *kernel))
    if np.dtype(dtype).kind == "c":
        x, w = x + 1j * rng.standard_normal(x.shape), w + 1j * rng.standard_normal(w.shape)
    return x.astype(dtype), w.astype(dtype)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_tables_of_small_convolutions_keep_the_bits(case, n):
    _, _, _, groups, _, kernel, stride, padding, dilation = case
    x, w = arrays(case, n, np.float32)
    positions = output_size(x.shape[2:], kernel, stride, padding, dilation)
    geometry = Geometry(x.shape[2:], kernel, positions, stride, padding, dilation, groups)
    g = np.random.default_rng(1).standard_normal((n, w.shape[0], *positions)).astype(np.float32)
    pairs = ((small_convolution.forward(x, w, geometry), conv_forward(x, w, stride, padding, dilation, groups)),
             (small_convolution.input_gradient(g, w, geometry),
              conv_input_grad(g, w, x.shape[2:], stride, padding, dilation, groups)),
             (small_convolution.weight_gradient(g, x, geometry),
              conv_weight_grad(g, x, kernel, stride, padding, dilation, groups)))
    for found, expected in pairs:
        if found is not None:
            assert (found.strides, found.tobytes()) == (expected.strides, expected.tobytes())


@pytest.fixture(params=["one block", "blocks of rows"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run again with blocks so small that images are cut into rows."""
    if request.param == "blocks of rows":
        monkeypatch.setattr(convolution, "BLOCK_BYTES", 1)
        monkeypatch.setattr(convolution, "LARGEST_BLOCK_BYTES", 64)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("case", CASES)
def test_forward_and_both_transposes_agree_with_torch(case: tuple, dtype: type) -> None:
    dims, _, _, groups, spatial, kernel, stride, padding, dilation = case
    x, w = arrays(case, dtype=dtype)
    tx, tw = torch.tensor(x, requires_grad=True), torch.tensor(w, requires_grad=True)
    expected = CONV[dims](tx, tw, None, stride, padding, dilation, groups)
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-12}
    out = conv_forward(x, w, stride, padding, dilation, groups)
    assert out.shape[2:] == output_size(spatial, kernel, stride, padding, dilation)
    assert out.dtype == dtype
    np.testing.assert_allclose(out, expected.detach(), **tolerance)
    g = np.random.default_rng(1).standard_normal(out.shape).astype(dtype)
    expected.backward(torch.tensor(g))
    np.testing.assert_allclose(conv_input_grad(g, w.conj(), spatial, stride, padding, dilation, groups),
                               tx.grad, **tolerance)
    np.testing.assert_allclose(conv_weight_grad(g, x.conj(), kernel, stride, padding, dilation, groups),
                               tw.grad, **tolerance)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("extra", [0, 1])
@pytest.mark.parametrize("case", CASES)
def test_transposed_convolution_and_its_gradients(case: tuple, extra: int) -> None:
    dims, c, o, groups, spatial, kernel, stride, padding, dilation = case
    if any(extra >= max(s, d) for s, d in zip(stride, dilation, strict=True)):
        pytest.skip("output padding must be smaller than stride or dilation")
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((2, c, *spatial)), rng.standard_normal((c, o // groups, *kernel))
    size = transposed_output_size(spatial, kernel, stride, padding, (extra,) * dims, dilation)
    if min(size) <= 0:
        pytest.skip("empty output")
    tx, tw = torch.tensor(x, requires_grad=True), torch.tensor(w, requires_grad=True)
    expected = TRANSPOSED[dims](tx, tw, None, stride, padding, (extra,) * dims, groups, dilation)
    out = conv_input_grad(x, w, size, stride, padding, dilation, groups)
    np.testing.assert_allclose(out, expected.detach(), rtol=1e-11, atol=1e-11)
    g = rng.standard_normal(out.shape)
    expected.backward(torch.tensor(g))
    np.testing.assert_allclose(conv_forward(g, w, stride, padding, dilation, groups, out_spatial=spatial),
                               tx.grad, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(conv_weight_grad(x, g, kernel, stride, padding, dilation, groups),
                               tw.grad, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.int32, np.int64])
def test_integers_wrap_as_torch(dtype: type) -> None:
    rng = np.random.default_rng(3)
    x, w = rng.integers(0, 100, (2, 3, 5, 5)).astype(dtype), rng.integers(0, 100, (4, 3, 3, 3)).astype(dtype)
    out = conv_forward(x, w, (1, 1), (1, 1), (1, 1), 1)
    assert out.dtype == dtype
    np.testing.assert_array_equal(out, F.conv2d(torch.tensor(x), torch.tensor(w), padding=1))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_precision_accumulates_in_single(name: str) -> None:
    rng = np.random.default_rng(4)
    x, w = rng.standard_normal((2, 3, 6, 6), dtype=np.float32), rng.standard_normal((4, 3, 3, 3), dtype=np.float32)
    stored = dtypes.BFLOAT16 if name == "bfloat16" else np.dtype(np.float16)
    narrow_x, narrow_w = dtypes.cast(x, stored), dtypes.cast(w, stored)
    out = conv_forward(narrow_x, narrow_w, (1, 1), (0, 0), (1, 1), 1)
    assert out.dtype == stored
    half = getattr(torch, name)
    expected = F.conv2d(torch.tensor(x).to(half), torch.tensor(w).to(half)).float()
    np.testing.assert_allclose(dtypes.widen(out), expected, rtol=1e-2, atol=1e-2)
    for result in (conv_input_grad(out, narrow_w, (6, 6), (1, 1), (0, 0), (1, 1), 1),
                   conv_weight_grad(out, narrow_x, (3, 3), (1, 1), (0, 0), (1, 1), 1)):
        assert result.dtype == stored


@pytest.mark.parametrize(("n", "c", "o"), list(itertools.product((0, 2), (0, 3), (0, 4))))
def test_empty(n: int, c: int, o: int) -> None:
    x, w = np.ones((n, c, 5, 5)), np.ones((o, c, 3, 3))
    out = conv_forward(x, w, (1, 1), (1, 1), (1, 1), 1)
    assert out.shape == (n, o, 5, 5)
    if not c:
        assert not out.any()
    assert conv_input_grad(out, w, (5, 5), (1, 1), (1, 1), (1, 1), 1).shape == x.shape
    assert conv_weight_grad(out, x, (3, 3), (1, 1), (1, 1), (1, 1), 1).shape == w.shape


def test_non_contiguous_operands() -> None:
    case = CASES[3]
    x, w = arrays(case)
    expected = conv_forward(x, w, (1, 1), (1, 1), (1, 1), 1)
    strided_x = np.repeat(x, 2, 3)[..., ::2]
    strided_w = np.asfortranarray(w)
    np.testing.assert_allclose(conv_forward(strided_x, strided_w, (1, 1), (1, 1), (1, 1), 1), expected)
    g = expected
    expanded = np.broadcast_to(g[:1], g.shape)
    np.testing.assert_allclose(conv_input_grad(expanded, strided_w, (7, 8), (1, 1), (1, 1), (1, 1), 1),
                               conv_input_grad(expanded.copy(), w, (7, 8), (1, 1), (1, 1), (1, 1), 1))
    np.testing.assert_allclose(conv_weight_grad(expanded, strided_x, (3, 3), (1, 1), (1, 1), (1, 1), 1),
                               conv_weight_grad(expanded.copy(), x, (3, 3), (1, 1), (1, 1), (1, 1), 1))
    pointwise_x, pointwise_w = np.asfortranarray(np.arange(2 * 3 * 400.0).reshape(2, 3, 20, 20)), np.ones((2, 3, 1, 1))
    np.testing.assert_allclose(conv_forward(pointwise_x, pointwise_w, (1, 1), (0, 0), (1, 1), 1),
                               np.repeat(pointwise_x.sum(1, keepdims=True), 2, 1))
