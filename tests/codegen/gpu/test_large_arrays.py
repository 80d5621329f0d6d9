"""Arrays of more than 2^31 elements: indices are int64. The kernels are generated and assembled, not run."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.codegen.gpu import convolution, elementwise, indexing, philox, pooling, scan
from flambeau.codegen.gpu.attention import flash
from flambeau.codegen.gpu.matmul import matmul, tiles
from flambeau.codegen.gpu.rows import reduction, rows
from flambeau.codegen.pooling.plan import regular
from flambeau.codegen.rows.schedule import Rows
from flambeau.codegen.scalar import scalar_ir as e
from flambeau.codegen.scan.scan import Scan
from flambeau.runtime.launch import Spec
from tests.codegen.gpu.assembling import assemble, kernels_of

F4 = np.dtype("f4")
BIG = 1 << 16


def dense(*shape, dtype="f4"):
    return Spec.dense(shape, np.dtype(dtype))


def all_launches():
    x = e.variable(0, F4)
    wide = dense(BIG, BIG)
    made = elementwise.launches([x + e.variable(1, F4)], [wide], [wide, dense(1, BIG)])
    made += reduction.launches([("sum", x), ("argmax", x)], [dense(BIG), dense(BIG, dtype="i8")], [wide], 1)
    made += reduction.launches([("max", x)], [dense(BIG)], [wide], 0)
    made += reduction.launches([("sum", x)], [dense()], [wide])
    made += rows.launches(Rows(elementwise=(x * 2,), totals=(x,)), [wide, dense()], [wide], 0)
    small = tiles.TABLE["float32"][-1]
    made += matmul.launches([wide], dense(BIG, 8), dense(8, BIG), tile=small)
    index, flag = dense(BIG, 1, dtype="i8"), dense(2, dtype="i8")
    made += indexing.take(wide, flag, wide, index, 0)
    made += indexing.put(wide, flag, wide, index, 0, ordered=True)
    made += indexing.put(wide, flag, wide, index, 0, ordered=False)
    made += philox.uniform(wide, dense(dtype="i8"), 0)
    image, half = dense(BIG, 1, 256, 256), dense(BIG, 1, 128, 128)
    windows = [regular(256, 128, 2, 2, 0)] * 2
    made += pooling.max_pool([half, half._replace(dtype=np.dtype("i8"), strides=tuple(2 * s for s in half.strides))],
                             image, windows)
    made += pooling.avg_pool_gradient(image, half, windows)
    made += convolution.launches("forward", [image], image, dense(1, 1, 1, 1), stride=(1, 1), padding=(0, 0),
                                 dilation=(1, 1), groups=1)
    made += scan.launches(Scan([x + e.variable(1, F4)], [e.constant(0.0, F4)], [F4]), [wide], [wide], 1)
    heads = dense(BIG, 64, 64, 16, dtype="f2")
    made += flash.forward(heads, dense(BIG, 64, 64), heads, heads, heads, 1.0, True)
    return made


@pytest.fixture(scope="module")
def launches():
    return all_launches()


def test_indices_are_wide(launches):
    for each in launches:
        if each.kernel.family not in ("merge_blocks", "merge_pieces", "philox"):
            assert "int64" in each.kernel.text or each.arguments[0].operand == 1, each.kernel.text[:300]
        assert each.grid[0] < 1 << 31


def test_kernels_are_assembled(launches):
    assemble([kernel for kernel in kernels_of(launches) if kernel.family != "attention"])
