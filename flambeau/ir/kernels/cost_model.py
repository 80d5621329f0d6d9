"""How much a kernel does: the bytes that it has to move, and the arithmetic.

Bytes are those that no kernel could do without: every element that is read counts once, however often it is used, and
every element that is written. Arithmetic is counted in additions, by what operations take on the machine
(`codegen.scalar.scalar_ir.additions`): a product of matrices is 2·m·n·k of them, an exponential about twenty.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from ...codegen.scalar.scalar_ir import additions
from ..graph import view_algebra as algebra
from ..graph.value import ELEMENTWISE, Value
from .pointwise import Kernel


class Cost(NamedTuple):
    """What one run of a kernel takes.

    Attributes:
        bytes: read and written.
        flops: arithmetic, in additions.
        wide: whether the arithmetic is on float64.
    """

    bytes: int
    flops: int
    wide: bool


def computed_values(kernel: Kernel) -> list[Value]:
    """The values that a kernel computes, in the order of their making; views are left out."""
    if assembled_piece(kernel) is not None:
        return list(kernel.outputs)
    given = {base for base, _ in kernel.inputs}
    found: set[Value] = set()
    stack = list(kernel.outputs)
    while stack:
        value = stack.pop()
        if value not in found and value not in given and value.op not in ("input", "constant"):
            found.add(value)
            stack.extend(arg.base for arg in value.args)
    return sorted(found, key=lambda v: v.number)


def assembled_piece(kernel: Kernel) -> tuple[Value, tuple[int, ...], int] | None:
    """What a kernel writes into a part of an assembled array, and the part's strides and offset; None for others."""
    if len(kernel.outputs) != 1 or kernel.outputs[0].op != "assemble" or not kernel.output_offsets:
        return None
    value, [shift] = kernel.outputs[0], kernel.output_offsets
    has_background, *places = value.attrs
    if has_background:
        places.insert(0, (algebra.dense_strides(value.shape), 0))
    base = kernel.inputs[0][0] if kernel.inputs else None
    for arg, (strides, offset) in zip(value.args, places, strict=True):
        if offset * value.dtype.itemsize == shift and (arg.base is base or (base is None and arg.base.size == 1)):
            return arg, strides, offset
    return None


def cost_of(kernel: Kernel) -> Cost:
    """What a kernel's run takes."""
    part = assembled_piece(kernel)
    if part is not None:
        arg = part[0]
        moved = arg.size * arg.dtype.itemsize
        return Cost(moved + (_distinct_elements(arg) * arg.dtype.itemsize if kernel.inputs else 0), 0, False)
    values = computed_values(kernel)
    inside = set(values)
    shown: dict[Value, dict[tuple, int]] = {}  # of each array that is read: elements, by how it is seen
    for value in values:
        for arg in value.args:
            if arg.base not in inside and not (arg.base.op == "constant" and arg.base.size == 1):
                count = _distinct_elements(arg)
                if kernel.name == "take" and arg is value.args[0]:  # what the indices name
                    count = min(count, kernel.outputs[0].size)
                shown.setdefault(arg.base, {})[arg.shape, arg.strides, arg.offset] = count
    moved = sum(v.size * v.dtype.itemsize for v in kernel.outputs)
    for base, ways in shown.items():
        moved += min(sum(ways.values()), base.size) * base.dtype.itemsize
    wide = any(v.dtype.kind == "f" and v.dtype.itemsize == 8 and v.size > 1 for v in values)
    return Cost(moved, sum(map(_flops, values)), wide)


def _distinct_elements(view: Value) -> int:
    """How many elements of its base a view shows."""
    return min(prod(n for n, stride in zip(view.shape, view.strides, strict=True) if stride), view.base.size)


def _flops(value: Value) -> int:
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
        return value.size * additions(op)
    return 0


__all__ = ["Cost", "assembled_piece", "computed_values", "cost_of"]
