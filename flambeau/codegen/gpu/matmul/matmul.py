"""Matrix products: tiles in shared memory, computed by the cores or by the tensor cores, with a fused epilogue.

A block computes a tile of C. Step by step along K it copies a tile of A and one of B to shared memory; meanwhile the
elements of the next step are on their way to registers. float32 and float64 are multiplied and added by the cores,
with one rounding (fma). float16 and bfloat16, and float32 where TF32 is allowed, take the tensor cores, which add in
float32.

>>> import numpy as np
>>> from flambeau.runtime.launch import Spec
>>> square = Spec.dense((256, 256), np.dtype(np.float32))
>>> [one] = launches([square], square, square)
>>> one.kernel.family
'matmul'
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from ....dtypes import BFLOAT16, HALF
from ....runtime.launch import Spec
from ... import iteration_space
from ...scalar.scalar_ir import Node, cast, constant, variable
from ..coordinates import INT32, coordinates, index_dtype, offset
from ..kernel_ir import Kernel, KernelBuilder, substitute
from ..launches import DeviceLaunch, launch
from . import tiles
from .product_tiles import Cores, Stage, TensorCores
from .tiles import Tile

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


class _Matrix(NamedTuple):
    """An operand's dtype and strides in elements: over the batch dimensions, over rows, over columns."""

    dtype: np.dtype
    batch: tuple[int, ...]
    row: int
    column: int


def launches(outputs: Sequence[Spec], a: Spec, b: Spec, extras: Sequence[Spec] = (),
             epilogue: Sequence[Node] | None = None, tf32: bool = False, tile: Tile | None = None
             ) -> list[DeviceLaunch]:
    """The launch that computes matrix products: C = epilogue(A B, extras...).

    Args:
        outputs: (..., M, N), one for each expression of the epilogue.
        a: (..., M, K), float16, bfloat16, float32 or float64.
        b: (..., K, N), of the same dtype; the batch dimensions broadcast.
        extras: arrays that broadcast to the outputs' shape; an extra may be an output of the same layout.
        epilogue: expressions of variable 0, the product (float32 for narrower dtypes), and variables 1, 2, ..., the
            extras. None: the product itself.
        tf32: whether float32 may be rounded to 10 bits of mantissa, for the tensor cores.
        tile: the tile; None: that of `tiles.choose`.

    Raises:
        TypeError: no product of these dtypes.
        ValueError: shapes do not match.
    """
    return list(_launches(tuple(outputs), a, b, tuple(extras), None if epilogue is None else tuple(epilogue), tf32,
                          tile))


def _kind(dtype: np.dtype, tf32: bool) -> str:
    if dtype == BFLOAT16:
        return "bf16"
    if dtype == HALF:
        return "f16"
    if dtype == F32:
        return "tf32" if tf32 else "float32"
    if dtype == F64:
        return "float64"
    raise TypeError(f"no matrix product of {dtype}: cast it to a floating dtype")


@lru_cache(4096)
def _launches(outputs: tuple[Spec, ...], a: Spec, b: Spec, extras: tuple[Spec, ...], epilogue: tuple[Node, ...] | None,
              tf32: bool, tile: Tile | None) -> tuple[DeviceLaunch, ...]:
    kind = _kind(a.dtype, tf32)
    if a.dtype != b.dtype:
        raise TypeError(f"a product of {a.dtype} and {b.dtype}: cast one of them")
    if len(a.shape) < 2 or len(b.shape) < 2 or a.shape[-1] != b.shape[-2]:
        raise ValueError(f"matmul cannot multiply matrices of shapes {a.shape} and {b.shape}")
    batch = iteration_space.broadcast([a.shape[:-2], b.shape[:-2]])
    (m, k), n = a.shape[-2:], b.shape[-1]
    shape = (*batch, m, n)
    if any(each.shape != shape for each in outputs):
        raise ValueError(f"results of shape {outputs[0].shape} for a product of shape {shape}")
    if not prod(shape):
        return ()
    matrices = [_matrix(each, shape) for each in outputs]
    matrices += [_matrix(a, (*batch, m, k)), _matrix(b, (*batch, k, n)), *(_matrix(each, shape) for each in extras)]
    chosen = tile or tiles.choose(m, n, k, prod(batch), kind)
    nodes = epilogue or (variable(0, F64 if kind == "float64" else F32),)
    builder = _Product(kind, chosen, batch, (m, n, k), matrices, len(outputs), nodes)
    return (launch(builder.kernel(), prod(batch) * -(-m // chosen.m) * -(-n // chosen.n)),)


def _matrix(spec: Spec, shape: tuple[int, ...]) -> _Matrix:
    strides = [s // spec.dtype.itemsize for s in iteration_space.checked_broadcast_strides(
        spec.shape, spec.strides, shape)]
    return _Matrix(spec.dtype, tuple(strides[:-2]), strides[-2], strides[-1])


class _Product:
    """The code of one product.

    Args:
        kind: a key of `tiles.TABLE`.
        tile: the tile.
        batch: extents of the batch dimensions.
        extents: M, N and K.
        matrices: outputs, A, B, extras.
        outputs: the number of outputs.
        nodes: the epilogue.
    """

    def __init__(self, kind: str, tile: Tile, batch: tuple[int, ...], extents: tuple[int, int, int],
                 matrices: Sequence[_Matrix], outputs: int, nodes: Sequence[Node]) -> None:
        self.kind, self.tile, self.nodes, self.outputs = kind, tile, nodes, outputs
        self.m, self.n, self.k = m, n, k = extents
        self.b = b = KernelBuilder("matmul", tile.threads)
        self.matrices, self.buffers = matrices, [b.buffer(each.dtype) for each in matrices]
        reach = [*batch, max(m, n, k), max(m, n, k)]
        dtype = index_dtype(reach, [[*each.batch, each.row, each.column] for each in matrices], 1)
        self.dtype, self.zero = dtype, constant(0, dtype)
        columns, rows = -(-n // tile.n), -(-m // tile.m)
        block = b.block if dtype == INT32 else cast(b.block, dtype)
        at_n, at_m, *places = coordinates(block, [columns, rows, *batch[::-1]])
        self.first_m, self.first_n = at_m * tile.m, at_n * tile.n
        self.base = [offset(places, each.batch[::-1], self.zero) for each in matrices]

    def kernel(self) -> Kernel:
        """The kernel."""
        b, tile = self.b, self.tile
        thread = b.thread if self.dtype == INT32 else cast(b.thread, self.dtype)
        compute = (Cores(b, tile, self.matrices[self.outputs].dtype, thread) if self.kind.startswith("float")
                   else TensorCores(b, tile, self.kind, thread))
        left, right = self.matrices[self.outputs:self.outputs + 2]
        stages = [
            Stage(b, thread, tile.threads, self.buffers[self.outputs], self.base[self.outputs], (tile.m, tile.k),
                  (left.row, left.column), (self.first_m, self.m), self.k, compute.left),
            Stage(b, thread, tile.threads, self.buffers[self.outputs + 1], self.base[self.outputs + 1],
                  (tile.n, tile.k), (right.column, right.row), (self.first_n, self.n), self.k, compute.right)]
        for stage in stages:
            stage.fetch(self.zero)
        with b.loop(self.zero, constant(self.k, self.dtype), constant(tile.k, self.dtype)) as step:
            b.barrier()
            for stage in stages:
                stage.put()
            b.barrier()
            for stage in stages:
                stage.fetch(step + tile.k)
            compute.step()
        for row, column, value in compute.results():
            self._store(self.first_m + row, self.first_n + column, value)
        return b.kernel()

    def _store(self, row: Node, column: Node, value: Node) -> None:
        b, tile = self.b, self.tile
        inside: Node | None = None
        for place, extent, part in ((row, self.m, tile.m), (column, self.n, tile.n)):
            if extent % part:
                within = place < extent
                inside = within if inside is None else inside & within
        at = [base + self._offset(row, column, each) for base, each in zip(self.base, self.matrices, strict=True)]
        known = {variable(0, value.dtype): value}
        for i, each in enumerate(self.matrices[self.outputs + 2:], self.outputs + 2):
            known[variable(i - self.outputs - 1, each.dtype)] = b.load(self.buffers[i], at[i], inside)
        for i, node in enumerate(self.nodes):
            b.store(self.buffers[i], at[i], substitute(node, known), inside)

    def _offset(self, row: Node, column: Node, matrix: _Matrix) -> Node:
        return offset([column, row], [matrix.column, matrix.row], self.zero)


__all__ = ["launches"]
