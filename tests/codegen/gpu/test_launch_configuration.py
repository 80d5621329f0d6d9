"""Tiles, layouts of rows, occupancy."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.codegen.gpu import elementwise
from flambeau.codegen.gpu.kernel_ir import KernelBuilder
from flambeau.codegen.gpu.matmul import matmul, tiles
from flambeau.codegen.gpu.nvptx import ptx, ptxas
from flambeau.codegen.gpu.nvptx.occupancy import LIMITS, occupancy
from flambeau.codegen.gpu.nvptx.ptxas import Resources
from flambeau.codegen.gpu.rows.layout import row_layout
from flambeau.codegen.scalar.scalar_ir import exp, variable
from flambeau.runtime.launch import Spec


@pytest.mark.parametrize("kind", tiles.TABLE)
def test_tiles_are_whole(kind):
    """Threads have equal parts of a tile, and copy equal numbers of elements."""
    for tile in tiles.TABLE[kind]:
        parts = (tile.m // tile.rows) * (tile.n // tile.columns)
        assert parts == (tile.threads if kind.startswith("float") else tile.threads // 32)
        assert tile.m * tile.k % tile.threads == tile.n * tile.k % tile.threads == 0


def test_large_products_take_large_tiles():
    assert tiles.choose(8192, 8192, 512, 1, "bf16").m == 128
    assert tiles.choose(128, 128, 512, 1, "bf16").m == 64


@pytest.mark.parametrize("rows", [1, 7, 5000])
@pytest.mark.parametrize("length", [1, 3, 32, 33, 700, 50_000])
def test_layouts_of_rows_cover_all_elements(rows, length):
    for persistent in (False, True):
        layout = row_layout(rows, length, persistent, 3)
        assert layout.threads % 32 == 0
        assert layout.threads <= 1024
        assert layout.held == 0 or layout.held * layout.across >= length
        assert persistent or layout.blocks * layout.down >= rows


def test_what_limits_occupancy():
    kernel = KernelBuilder("k", 128).kernel()
    assert occupancy(kernel, Resources(16, 0, 0)).limit == "threads"
    assert occupancy(kernel, Resources(255, 0, 0)).limit == "registers"
    assert occupancy(kernel, Resources(16, 0, 40 << 10)) == (4, "shared memory", 0.25)
    with pytest.raises(ValueError, match="does not fit on sm_86"):
        occupancy(kernel, Resources(16, 0, 120 << 10), "sm_86")


def test_kernels_fit_and_do_not_spill():
    if ptxas.path() is None:
        pytest.skip("ptxas is not installed: pip install flambeau[cuda-test]")
    spec = Spec.dense((1024, 1024), np.dtype("f4"))
    kernels = [each.kernel for each in (*elementwise.launches([exp(variable(0, "float32"))], [spec], [spec]),
                                        *matmul.launches([spec], spec, spec))]
    resources = ptxas.assemble(ptx.compile_kernels(kernels), "sm_80")
    for kernel in kernels:
        assert not resources[kernel.name].spilled
        for architecture in LIMITS:
            assert occupancy(kernel, resources[kernel.name], architecture).blocks
    assert occupancy(kernels[0], resources[kernels[0].name]).share == 1.0
