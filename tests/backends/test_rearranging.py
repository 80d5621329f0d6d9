"""Flips of arrays whose short rows are copied as one element of another dtype."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.complex64, torch.float64])
@pytest.mark.parametrize("shape", [(5, 4), (3, 4, 2), (2, 3, 1, 2), (7, 2), (3, 8), (0, 2), (4, 1)])
def test_flips_of_short_rows(dtype, shape):
    x = torch.arange(int(np.prod(shape))).to(dtype).reshape(shape)
    expected = np.arange(int(np.prod(shape))).reshape(shape)
    for dims in [(0,), (1,), (0, 1), (-2,), tuple(range(len(shape))), ()]:
        for a, b in ((x, expected), (x[1:], expected[1:]), (x.transpose(0, 1), expected.swapaxes(0, 1))):
            found = torch.flip(a, dims)
            assert found.to(torch.float64 if not dtype.is_complex else dtype).real.tolist() == np.flip(b, dims).tolist()
            assert found.dtype is dtype
            if a.numel():
                likely = zip(a.shape, found.stride(), torch.empty_like(a).stride(), strict=True)
                assert all(n == 1 or s == t for n, s, t in likely)
