"""Slices added by an index to large arrays: as NumPy adds them, in the same order."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "int16", "float16", "bfloat16", "bool"])
@pytest.mark.parametrize("shape", [(40, 30), (7, 20, 9), (2, 3, 5, 6), (50,), (4, 1, 3)])
def test_index_add(dtype, shape, ways):
    rng = np.random.default_rng(0)
    kind = getattr(torch, dtype)
    x = torch.tensor(rng.integers(0, 9, shape)).to(kind)
    for dim, size in enumerate(shape):
        for index_type in (torch.int64, torch.int32):
            index = torch.tensor(rng.integers(0, size, 2 * size)).to(index_type)
            source = torch.tensor(rng.integers(0, 9, (*shape[:dim], 2 * size, *shape[dim + 1:]))).to(kind)
            for given in (x, x.transpose(0, -1).contiguous().transpose(0, -1)):
                args = (dim, index, source)
                by_numpy, by_kernels = ways.both(lambda given=given, args=args: given.index_add(*args))
                assert torch.equal(by_numpy, by_kernels)
                assert by_numpy.stride() == by_kernels.stride()


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_gradients_of_what_is_selected(dim, ways):
    index = torch.tensor([0, 2, 2, 5, 1, 2])

    def run():
        x = torch.arange(6 * 7 * 8.0).view(6, 7, 8).requires_grad_()
        y = x.index_select(dim, index)
        y.backward(torch.arange(float(y.numel())).view(y.shape) / 7)
        return x.grad.numpy().tobytes()

    by_numpy, by_kernels = ways.both(run)
    assert by_numpy == by_kernels


def test_out_of_range(ways):
    x, source = torch.zeros(40, 30), torch.ones(2, 30)
    for index in ([0, 40], [-1, 0]):
        for way in (ways.numpy, ways.kernels):
            with pytest.raises(IndexError, match="index out of range in self"):
                way(lambda index=index: x.index_add(0, torch.tensor(index), source))
    for way in (ways.numpy, ways.kernels):
        assert way(lambda: x.index_add(0, torch.zeros(0, dtype=torch.int64), source[:0])).sum() == 0
