"""Samples of every operator in every dtype, by kernels and by NumPy: equal values and errors."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau import dtypes
from tests.ops.spec import Make, load, public

RECORDS = load()
DTYPES = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
          torch.float32, torch.float64, torch.complex64, torch.complex128)
#: relative to the largest of a result: sums of narrow numbers round in another order
TOLERANCE = {torch.float16: 5e-3, torch.bfloat16: 4e-2, torch.float32: 1e-5, torch.complex64: 1e-5}
#: samples of a record in the dtypes that programs use most, and in each other one
SAMPLES = int(os.environ.get("FLAMBEAU_SAMPLES", "3"))
FEWER = SAMPLES // 2
USUAL = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool)


def samples_of(name, dtype):
    try:
        return list(RECORDS[name].samples(Make(torch, dtype, False, 3)))[:SAMPLES if dtype in USUAL else FEWER]
    except (RuntimeError, TypeError, ValueError, NotImplementedError, OverflowError):
        return []  # there is no such sample, as of random numbers that are no integers


def outcome(name, sample):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = public(torch, name)(*sample.args, **sample.kwargs)
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, OverflowError) as error:
            return f"{type(error).__name__}: {error}"
    return [found] if not isinstance(found, (list, tuple)) else list(found)


def same(a, b):
    if not isinstance(a, torch.Tensor):
        assert a == b
        return
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    x, y = (dtypes.widen(each.detach().resolve_conj()._array) for each in (a, b))
    if x.dtype.kind not in "fc":
        np.testing.assert_array_equal(x, y)
        return
    tolerance = TOLERANCE.get(a.dtype, 1e-10)
    scale = np.max(np.abs(x), initial=0, where=np.isfinite(x))
    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * float(scale))


@pytest.mark.parametrize("name", RECORDS)
def test_kernels_and_numpy_agree(impls, name):
    for dtype in DTYPES:
        for by_numpy, by_kernels in zip(samples_of(name, dtype), samples_of(name, dtype), strict=True):
            expected = impls.numpy(lambda sample=by_numpy: outcome(name, sample))
            found = impls.kernels(lambda sample=by_kernels: outcome(name, sample))
            assert isinstance(expected, str) == isinstance(found, str), (dtype, expected, found)
            if isinstance(expected, str):
                assert found == expected
                continue
            for a, b in zip(expected, found, strict=True):
                same(a, b)
