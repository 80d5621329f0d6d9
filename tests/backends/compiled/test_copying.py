"""Copies and fills of large arrays against NumPy, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.backends import compiled

DTYPES = ["float32", "float64", "int64", "int32", "bool", "uint8", "float16", "bfloat16", "complex64", "complex128"]


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch):
    from flambeau.backends.compiled import thresholds

    before = thresholds.set_thresholds(1)
    yield
    thresholds.restore_thresholds(before)


def patterns(dtype, shape):
    """Random bits, so that NaN of all kinds are among them."""
    kind = getattr(torch, dtype).numpy
    rng = np.random.default_rng(0)
    if kind == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    return np.frombuffer(rng.bytes(int(np.prod(shape)) * kind.itemsize), kind).reshape(shape).copy()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("of", [lambda x: x, lambda x: x.T, lambda x: x[::2, 1:], lambda x: x[3], lambda x: x[:, :1]])
def test_copies_between_arrays(dtype, of):
    source, room = of(patterns(dtype, (40, 30))), patterns(dtype, (50, 60))
    expected = room.copy()
    shape = np.broadcast_shapes(source.shape, (30, 30) if source.shape == (30,) else source.shape)
    inside, same = (each[5:5 + shape[0], 7:7 + shape[1]] for each in (room, expected))
    same[...] = source
    compiled.copy(inside, source)
    assert room.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_are_copied_and_filled(dtype):
    kind = getattr(torch, dtype)
    x = torch.zeros(400, dtype=kind)
    x[::2].fill_(1)
    assert x[::2].tolist() == torch.ones(200, dtype=kind).tolist()
    assert x[1::2].tolist() == torch.zeros(200, dtype=kind).tolist()
    y = x.clone()
    assert y.data_ptr() != x.data_ptr()
    assert y.tolist() == x.tolist()
    x.zero_()
    assert not x.any()
    assert x.copy_(y).tolist() == y.tolist()
    out = torch.empty(400, dtype=kind)
    torch.neg(y, out=out) if kind not in (torch.bool, torch.uint8) else torch.bitwise_not(y, out=out)
    assert out.shape == (400,)


def test_nan_payloads_are_preserved():
    x = torch.zeros(300, dtype=torch.int32)
    x.fill_(0x7F800001)  # as a float32 a signalling NaN
    assert (x == 0x7F800001).all()


def test_overlapping_copies_use_numpy():
    a = np.arange(100.0)
    compiled.copy(a[1:], a[:-1])
    assert a.tolist() == [0.0, *np.arange(99.0)]


@pytest.mark.skipif(not codegen.available(), reason="there is no compiler")
def test_memory_is_reused():
    by = compiled.copy_kernels()
    first = by.zeros((1 << 10, 1 << 10), np.dtype(np.float32))
    assert first.flags.owndata
    assert not first.any()
    first[...] = 1
    del first
    assert not by.zeros((1 << 10, 1 << 10), np.dtype(np.float32)).any()


VIEWS = [lambda x: x, lambda x: x.t(), lambda x: x[::2, 1:], lambda x: x[:, :1].expand(40, 30),
         lambda x: x.reshape(4, 10, 30).permute(2, 0, 1), lambda x: x[:0]]


def assert_identical(impls, function):
    expected, found = impls.both(function)
    assert (expected.dtype, expected.shape, expected.stride()) == (found.dtype, found.shape, found.stride())
    assert expected._array.tobytes() == found._array.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("of", VIEWS)
def test_triangles(impls, dtype, of):
    x = of(torch.linspace(-50, 50, 1200).reshape(40, 30).to(torch.int32).to(getattr(torch, dtype)))
    for diagonal in (0, 1, -3, 100, -100, 1 << 40, -(1 << 40)):
        for cut in (torch.tril, torch.triu):
            assert_identical(impls, lambda cut=cut, k=diagonal: cut(x, k))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("of", VIEWS)
def test_masked_fills(impls, dtype, of):
    kind = getattr(torch, dtype)
    x = of(torch.linspace(-50, 50, 1200).reshape(40, 30).to(torch.int32).to(kind))
    mask = torch.from_numpy(patterns("bool", tuple(x.shape)))
    for each in (mask, mask.transpose(0, -1).clone().transpose(0, -1), mask[:1], mask[..., :1], mask.new_ones(())):
        for value in (True, torch.tensor(3)):
            assert_identical(impls, lambda m=each, v=value: torch.masked_fill(x, m, v))
    assert_identical(impls, lambda: torch.masked_fill(x[:1], mask, 2))


def test_gradients_of_triangles_and_masked_fills(impls):
    mask = torch.from_numpy(patterns("bool", (40, 30)))

    def gradient(cut):
        x = torch.ones(40, 30, requires_grad=True)
        (cut(x) * torch.arange(30.0)).sum().backward()
        return x.grad

    for cut in (torch.tril, torch.triu, lambda x: x.masked_fill(mask, 0.5)):
        assert_identical(impls, lambda cut=cut: gradient(cut))
