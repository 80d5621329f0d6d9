"""Reductions over any axes, as row kernels: over rows, or over columns if the remaining dimension is contiguous."""

from __future__ import annotations

from collections.abc import Sequence

from ....runtime.launch import Spec
from ... import iteration_space
from ...rows.schedule import Rows, term_dtype
from ...scalar.reduction_ops import result_dtype
from ...scalar.scalar_ir import Node, cast, variable
from ..launches import DeviceLaunch
from . import rows

#: the least extent of the contiguous dimension for a reduction over columns
MIN_COLUMNS = 16


def launches(terms: Sequence[tuple[str, Node]], outs: Sequence[Spec], ins: Sequence[Spec],
             axes: int | Sequence[int] | None = None) -> list[DeviceLaunch]:
    """The launches that reduce several expressions over the same axes.

    Args:
        terms: pairs of a reduction and an expression, whose variables index `ins`.
        outs: the outputs, of the remaining shape; reduced axes are left out or have extent 1.
        ins: the inputs, of shapes that broadcast together to the shape that is reduced.
        axes: the axes of that shape to reduce; None for all. Indices (argmax) over several axes are row-major.

    Raises:
        ValueError: shapes do not match, or a reduction of no elements has no identity.
    """
    shape = iteration_space.broadcast([each.shape for each in ins])
    rank = len(shape)
    chosen = range(rank) if axes is None else (axes,) if isinstance(axes, int) else axes
    reduced = sorted({axis % rank for axis in chosen})
    remaining = [dim for dim in range(rank) if dim not in reduced]
    left = tuple([shape[dim] for dim in remaining])
    results = []
    for each in outs:
        ones = tuple([1 if dim in reduced else shape[dim] for dim in range(rank)])
        if each.shape not in (left, ones):
            raise ValueError(f"a result of shape {each.shape} for a reduction of {shape} over {reduced}")
        results.append(each if each.shape == left else Spec(left, tuple([each.strides[dim] for dim in remaining]),
                                                            each.dtype))
    strides = [iteration_space.broadcast_strides(each.shape, each.strides, shape) for each in ins]
    columns = bool(remaining) and _reduces_columns(shape, remaining, reduced, strides)
    order = [*reduced, *remaining] if columns else [*remaining, *reduced]
    arrays = [Spec(tuple([shape[dim] for dim in order]), tuple([own[dim] for dim in order]), each.dtype)
              for each, own in zip(ins, strides, strict=True)]
    if columns:
        sums = Rows(column_sums=tuple([x for _, x in terms]), column_ops=tuple([op for op, _ in terms]))
        return rows.launches(sums, results, arrays, len(remaining))
    per_row = [cast(variable(len(ins) + i, term_dtype(op, x)), result_dtype(op, x)) for i, (op, x) in enumerate(terms)]
    return rows.launches(Rows(stages=(tuple(terms),), per_row=tuple(per_row)), results, arrays, len(reduced))


def _reduces_columns(shape: tuple[int, ...], remaining: Sequence[int], reduced: Sequence[int],
                     strides: Sequence[Sequence[int]]) -> bool:
    """Whether the fastest dimension remains, and is long enough for the threads of a warp."""
    if not reduced or not iteration_space.numel(shape):
        return False
    fastest = iteration_space.memory_order(shape, strides)[-1]
    return fastest in remaining and shape[fastest] >= MIN_COLUMNS


__all__ = ["launches"]
