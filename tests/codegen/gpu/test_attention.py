"""Flash attention on the emulator against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.codegen.gpu.attention import flash
from flambeau.codegen.gpu.emulation import emulator
from flambeau.dtypes import BFLOAT16, to_bfloat16, widen
from flambeau.runtime.launch import Spec
from tests.codegen.gpu.assembling import assemble, kernels_of

RANDOM = np.random.default_rng(0)


def reference(q, k, v, g, scale, causal):
    q, k, v, g = (widen(x).astype("f8") for x in (q, k, v, g))
    scores = q @ k.swapaxes(-1, -2) * scale
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    weights /= total
    out = weights @ v
    dp = g @ v.swapaxes(-1, -2)
    delta = (g * out).sum(-1, keepdims=True)
    ds = weights * (dp - delta) * scale
    return (out, (top + np.log(total))[..., 0], ds @ k, ds.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ g,
            delta[..., 0])


@pytest.mark.parametrize(("dtype", "lengths", "width", "causal"), [
    (np.dtype("f2"), (64, 64), 32, False), (np.dtype("f2"), (100, 70), 24, False), (BFLOAT16, (80, 80), 48, True),
    (np.dtype("f2"), (33, 130), 16, True)])
def test_forward_and_backward(dtype, lengths, width, causal):
    rows, keys = lengths
    shapes = [(2, rows, 3, width), (2, keys, 3, width), (2, keys, 3, width), (2, rows, 3, width)]
    arrays = [RANDOM.standard_normal(shape).astype("f4") for shape in shapes]
    arrays = [to_bfloat16(x) if dtype == BFLOAT16 else x.astype(dtype) for x in arrays]
    q, k, v, g = (x.transpose(0, 2, 1, 3) for x in arrays)  # heads are strided, as projections give them
    scale = width**-0.5
    out, lse = np.zeros(q.shape, dtype), np.zeros(q.shape[:3], "f4")
    launches = flash.forward(*map(Spec.of, (out, lse, q, k, v)), scale, causal)
    emulator.run_launches(launches, [out, lse, q, k, v])
    expected = reference(q, k, v, g, scale, causal)
    tolerance = {"rtol": 2e-2, "atol": 2e-2} if dtype == BFLOAT16 else {"rtol": 3e-3, "atol": 3e-3}
    np.testing.assert_allclose(widen(out), expected[0], **tolerance)
    np.testing.assert_allclose(lse, expected[1], rtol=1e-5, atol=1e-5)
    delta = expected[5].astype("f4")
    grads = [np.zeros(x.shape, dtype) for x in (q, k, v)]
    back = flash.backward(*[[Spec.of(x) for x in grads], *map(Spec.of, (g, q, k, v, lse, delta))], scale, causal)
    emulator.run_launches(back, [*grads, g, q, k, v, lse, delta])
    for mine, other in zip(grads, expected[2:5], strict=True):
        np.testing.assert_allclose(widen(mine), other, rtol=3 * tolerance["rtol"], atol=3 * tolerance["atol"])


def test_other_dtypes_and_widths_are_refused():
    single, wide = Spec.dense((1, 1, 8, 16), np.dtype("f4")), Spec.dense((1, 1, 8, 256), np.dtype("f2"))
    lse = Spec.dense((1, 1, 8), np.dtype("f4"))
    with pytest.raises(TypeError, match="flash attention is of float16 or bfloat16, not float32"):
        flash.forward(single, lse, single, single, single, 1.0)
    with pytest.raises(NotImplementedError, match="heads 256 and 256 wide: at most 128"):
        flash.forward(wide, lse, wide, wide, wide, 1.0)


def test_kernels_are_assembled():
    q = Spec.dense((2, 4, 256, 32), BFLOAT16)
    lse = Spec.dense((2, 4, 256), np.dtype("f4"))
    launches = flash.forward(q, lse, q, q, q, 0.125, True)
    launches += flash.backward([q] * 3, q, q, q, q, lse, lse, 0.125, True)
    assemble(kernels_of([each._replace(unaligned=None) for each in launches]))
