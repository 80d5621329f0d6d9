"""Epilogues of matmul: expressions of a block's elements and of other arrays, applied before the result is stored."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ...runtime import compilation
from ..scalar.scalar_ir import Node, canonical_text, topological_order


def steps_text(dtypes: Sequence[np.dtype], steps: str) -> str:
    """Describe operands for a cache key: dtypes, and how each steps along a row."""
    return f"{steps} " + " ".join(str(dtype) for dtype in dtypes)


@lru_cache(1024)
def library(dtype: np.dtype, nodes: tuple[Node, ...], dtypes: tuple[np.dtype, ...], steps: str,
            lanes: int) -> compilation.Library:
    """Compile the epilogue function (`microkernel.EPILOGUE`) that computes `nodes` from a block of sums.

    Args:
        dtype: the product's.
        nodes: one expression for each output; variable 0 is the product, the extras follow.
        dtypes: of the outputs, then of the extras.
        steps: how each of these steps along a row (`loop_nests.Operand`).
        lanes: elements computed at once.
    """
    recipe = f"matmul epilogue {dtype} {lanes} {steps_text(dtypes, steps)}\n{canonical_text(nodes)}"
    return compilation.load(recipe, ("epilogue",), lambda: _generate(dtype, nodes, dtypes, steps, lanes), "few")


def _generate(dtype: np.dtype, nodes: tuple[Node, ...], dtypes: Sequence[np.dtype], steps: str, lanes: int) -> str:
    from llvmlite import ir

    from ..llvm import kernel_entry
    from ..llvm.loop_nests import POINTER, Operand, at, first_lanes, i64, loop, word
    from ..llvm.lowering import lower
    from .microkernel import EPILOGUE

    module = ir.Module("epilogue")
    _, builder = kernel_entry.begin(module, "epilogue", EPILOGUE)
    tile, pitch, bases, strides, row, column, rows, columns = builder.function.args
    operands = [Operand(each, step) for each, step in zip(dtypes, steps, strict=True)]
    used = {node.const: node for node in topological_order(nodes) if node.op == "input"}
    places = [*range(len(nodes)), *(len(nodes) + i - 1 for i in used if i)]
    product = Operand(dtype, "c")
    corners, down, along = {}, {}, {}
    for k in places:
        base = builder.load(builder.gep(bases, [i64(k)], source_etype=POINTER), typ=POINTER)
        down[k] = word(builder, strides, k)
        along[k] = word(builder, strides, len(operands) + k)
        corners[k] = at(builder, at(builder, base, builder.mul(row, down[k])), builder.mul(column, along[k]))
    full_columns = builder.sub(columns, builder.srem(columns, i64(lanes)))
    mask = first_lanes(builder, builder.sub(columns, full_columns), lanes)
    with loop(builder, i64(0), rows) as r:
        here = {k: at(builder, corners[k], builder.mul(r, down[k])) for k in places}
        line = at(builder, tile, builder.mul(r, pitch))

        def vector(j: object, mask: object) -> None:
            values = {}
            for i, node in used.items():
                k = len(nodes) + i - 1
                values[node] = (product.load(builder, line, None, j, lanes, mask) if i == 0 else
                                operands[k].load(builder, here[k], along[k], j, lanes, mask))
            for k, value in enumerate(lower(builder, nodes, values, lanes)):
                operands[k].store(builder, value, here[k], along[k], j, lanes, mask)

        with loop(builder, i64(0), full_columns, lanes) as j:
            vector(j, None)
        with builder.if_then(builder.icmp_signed("<", full_columns, columns)):
            vector(full_columns, mask)
    builder.ret_void()
    return str(module)
