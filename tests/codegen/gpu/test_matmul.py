"""Matrix products on the emulator against NumPy, for every tile of the table."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.codegen.gpu.emulation import emulator
from flambeau.codegen.gpu.matmul import matmul, tiles
from flambeau.codegen.scalar import scalar_ir as e
from flambeau.dtypes import BFLOAT16, to_bfloat16, widen
from flambeau.runtime.launch import Spec
from tests.codegen.gpu.assembling import assemble, kernels_of

RANDOM = np.random.default_rng(0)
KINDS = {"float32": np.dtype("f4"), "float64": np.dtype("f8"), "bf16": BFLOAT16, "f16": np.dtype("f2"),
         "tf32": np.dtype("f4")}


def normal(shape, dtype):
    x = RANDOM.standard_normal(shape).astype("f4")
    return to_bfloat16(x) if dtype == BFLOAT16 else x.astype(dtype)


def run(launches, operands):
    emulator.run_launches(launches, operands)


def wide(x):
    return widen(x).astype("f8")


@pytest.mark.parametrize(("kind", "tile"), [(kind, tile) for kind, each in tiles.TABLE.items() for tile in each])
def test_every_tile(kind, tile):
    m, n, k = tile.m + 5, tile.n - 3, 2 * tile.k + 1
    a, b = normal((m, k), KINDS[kind]), normal((k, n), KINDS[kind])
    c = np.full((m, n), np.nan, "f8" if kind == "float64" else "f4")
    run(matmul.launches([Spec.of(c)], Spec.of(a), Spec.of(b), tf32=kind == "tf32", tile=tile), [c, a, b])
    np.testing.assert_allclose(c, wide(a) @ wide(b), rtol=5e-3 if kind == "tf32" else 1e-5,
                               atol=3e-2 if kind == "tf32" else 1e-5)


@pytest.mark.parametrize("transposed", [(True, False), (False, True), (True, True)])
def test_batches_strides_and_epilogue(transposed):
    a = normal((2, 3, 20, 17), "f4")
    b = normal((3, 17, 40), "f4")
    if transposed[0]:
        a = np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
    if transposed[1]:
        b = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2)
    bias, scale = normal((40,), "f4"), normal((2, 1, 20, 1), "f4")
    product, x, y = (e.variable(i, "float32") for i in range(3))
    outs = [np.empty((2, 3, 20, 40), "f4"), np.empty((2, 3, 20, 40), bool)]
    nodes = [e.maximum(product + x, 0.0) * y, product > 0]
    extras = [bias, scale]
    run(matmul.launches([Spec.of(each) for each in outs], Spec.of(a), Spec.of(b), [Spec.of(each) for each in extras],
                        nodes), [*outs, a, b, *extras])
    expected = a @ b
    np.testing.assert_allclose(outs[0], np.maximum(expected + bias, 0) * scale, rtol=1e-4, atol=1e-5)
    assert (outs[1] == (expected > 0)).mean() > 0.999


def test_dtypes_and_shapes_are_checked():
    x, y = Spec.dense((4, 4), np.dtype("i8")), Spec.dense((3, 4), np.dtype("f4"))
    with pytest.raises(TypeError, match="no matrix product of int64"):
        matmul.launches([x], x, x)
    with pytest.raises(ValueError, match=r"cannot multiply matrices of shapes \(3, 4\) and \(3, 4\)"):
        matmul.launches([y], y, y)


def test_one_of_each_kind_is_assembled():
    smallest = [tile[-1] for tile in tiles.TABLE.values()]
    specs = [Spec.dense((256, 256), dtype) for dtype in KINDS.values()]
    launches = [matmul.launches([spec], spec, spec, tf32=kind == "tf32", tile=tile, epilogue=[e.cast(e.variable(
        0, "float64" if kind == "float64" else "float32"), spec.dtype)])[0]
        for kind, spec, tile in zip(KINDS, specs, smallest, strict=True)]
    assemble(kernels_of(launches))
