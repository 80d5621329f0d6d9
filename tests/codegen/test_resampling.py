"""Kernels of resampling: equal to NumPy's sums, transposes of each other, and infinities stay in their taps."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as fb
from flambeau import codegen
from flambeau.backends.compiled import thresholds
from flambeau.backends.compiled.families import resampling

CASES = [((2, 3, 17, 40), {"scale_factor": 2, "mode": "bilinear"}),
         ((1, 2, 9, 64), {"size": (21, 30), "mode": "bicubic"}),
         ((2, 2, 6, 8, 20), {"scale_factor": 2, "mode": "trilinear"}),
         ((3, 2, 300), {"size": 123, "mode": "linear"})]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "options"), CASES, ids=[options["mode"] for _, options in CASES])
def test_kernels_and_numpy_agree(shape, options, dtype):
    random = np.random.default_rng(0)
    x = fb.tensor(random.standard_normal(shape).astype(dtype), requires_grad=True)
    results = []
    for least in (1 << 62, 0):
        before, thresholds.RESAMPLING[0] = thresholds.RESAMPLING[0], least
        try:
            out = fb.nn.functional.interpolate(x, align_corners=False, **options)
            g = fb.tensor(np.random.default_rng(1).standard_normal(out.shape).astype(dtype))
            results.append((out.detach().numpy(), fb.autograd.grad(out, x, g)[0].numpy()))
        finally:
            thresholds.RESAMPLING[0] = before
    np.testing.assert_array_equal(results[1][0], results[0][0])
    np.testing.assert_allclose(results[1][1], results[0][1], rtol=1e-4 if dtype == "float32" else 1e-12, atol=1e-5)


def test_missing_taps_add_nothing():
    if not codegen.available():
        assert resampling.resample(np.ones(3, np.int64), -1, ((0,),), ((1.0,),)) is None
        return
    g = np.zeros((40, 6), np.float32)
    g[:, 0] = np.inf
    positions, weights = ((0, 0, 1, 1, 2, 2),), ((0.5, 0.25, 0.5, 0.25, 0.5, 0.0),)
    for array in (g, np.repeat(g[:, :, None], 5, 2)):
        found = resampling.resample_backward(array, 1 - array.ndim, 3, positions, weights)
        assert np.isinf(found[:, 0]).all()
        assert not found[:, 1:].any()


def test_other_arrays_are_numpys():
    assert resampling.resample(np.ones((4, 6), np.float16), -1, ((0,),), ((1.0,),)) is None
    assert resampling.resample(np.ones((4, 6), np.float32).T, -1, ((0,),), ((1.0,),)) is None
