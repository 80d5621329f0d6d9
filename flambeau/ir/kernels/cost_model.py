"""Cost model: the bytes that a kernel must move and the arithmetic that it does.

Bytes are a lower bound: every element read counts once, however often it is used, and every element written. Arithmetic
is counted in additions of equal cost (`codegen.scalar.scalar_ir.op_cost`): a matmul has 2·m·n·k, an exponential about
20 per element.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from ...codegen.scalar.scalar_ir import op_cost
from ..graph import view_algebra as algebra
from ..graph.value import ELEMENTWISE, Value
from .pointwise import Kernel


class Cost(NamedTuple):
    """The cost of one run of a kernel.

    Attributes:
        bytes: read and written, in bytes.
        flops: arithmetic, in additions.
        wide: whether the arithmetic is on float64.
    """

    bytes: int
    flops: int
    wide: bool


def computed_values(kernel: Kernel) -> list[Value]:
    """The values that a kernel computes, without views, in creation order."""
    if assembled_piece(kernel) is not None:
        return list(kernel.outputs)
    inputs = {base for base, _ in kernel.inputs}
    computed: set[Value] = set()
    stack = list(kernel.outputs)
    while stack:
        value = stack.pop()
        if value not in computed and value not in inputs and value.op not in ("input", "constant"):
            computed.add(value)
            stack.extend(arg.base for arg in value.args)
    return sorted(computed, key=lambda v: v.number)


def assembled_piece(kernel: Kernel) -> tuple[Value, tuple[int, ...], int] | None:
    """The piece that a kernel copies into an assembled array, with its strides and offset; None for other kernels."""
    if len(kernel.outputs) != 1 or kernel.outputs[0].op != "assemble" or not kernel.output_offsets:
        return None
    value, [shift] = kernel.outputs[0], kernel.output_offsets
    has_background, *locations = value.attrs
    if has_background:
        locations.insert(0, (algebra.dense_strides(value.shape), 0))
    base = kernel.inputs[0][0] if kernel.inputs else None
    for arg, (strides, offset) in zip(value.args, locations, strict=True):
        if offset * value.dtype.itemsize == shift and (arg.base is base or (base is None and arg.base.size == 1)):
            return arg, strides, offset
    return None


def cost_of(kernel: Kernel) -> Cost:
    """The cost of one run of a kernel."""
    piece = assembled_piece(kernel)
    if piece is not None:
        arg = piece[0]
        moved = arg.size * arg.dtype.itemsize
        return Cost(moved + (_distinct_elements(arg) * arg.dtype.itemsize if kernel.inputs else 0), 0, False)
    values = computed_values(kernel)
    computed = set(values)
    reads: dict[Value, dict[tuple, int]] = {}  # for each array read: the number of elements by view
    for value in values:
        for arg in value.args:
            if arg.base not in computed and not (arg.base.op == "constant" and arg.base.size == 1):
                count = _distinct_elements(arg)
                if kernel.name == "take" and arg is value.args[0]:  # at most one element per index
                    count = min(count, kernel.outputs[0].size)
                reads.setdefault(arg.base, {})[arg.shape, arg.strides, arg.offset] = count
    moved = sum(v.size * v.dtype.itemsize for v in kernel.outputs)
    for base, views in reads.items():
        moved += min(sum(views.values()), base.size) * base.dtype.itemsize
    wide = any(v.dtype.kind == "f" and v.dtype.itemsize == 8 and v.size > 1 for v in values)
    return Cost(moved, sum(map(flops_of, values)), wide)


def _distinct_elements(view: Value) -> int:
    """The number of distinct base elements that a view reads."""
    return min(prod(n for n, stride in zip(view.shape, view.strides, strict=True) if stride), view.base.size)


def flops_of(value: Value) -> int:
    """The arithmetic of a value."""
    op = value.op
    if op == "matmul":
        return 2 * value.size * value.args[0].shape[-1]
    if op == "convolve":
        first, second = value.args
        kind = value.attrs[0]
        if kind == "forward":
            return 2 * value.size * prod(second.shape[1:])
        return 2 * first.size * prod((second if kind == "image" else value).shape[1:])
    if op == "reduce":
        return value.args[0].size
    if op in ELEMENTWISE and op not in ("copy", "cast"):
        return value.size * op_cost(op)
    return 0


__all__ = ["Cost", "assembled_piece", "computed_values", "cost_of", "flops_of"]
