"""Reductions of expressions over any axes, several in one pass, as row kernels.

The reduced dimensions form a row (`rows.py`). Sums are pairwise, so that their errors grow as the logarithm of the
number of elements. Results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...runtime import launch as launching
from ...runtime.launch import Launch, Spec
from .. import iteration_space
from ..scalar.reduction_ops import result_dtype, to_accumulator
from ..scalar.scalar_ir import Node, cast, topological_order, variable
from . import rows

#: minimum length of rows whose columns are reduced
MIN_ROW = 64
#: with so many independent groups, reducing all columns of a group at once would exceed the caches: a few columns at a
#: time are faster, unless rows are at least `MIN_PITCH` elements apart
MAX_GROUPS, MIN_PITCH = 16, 1024
#: column reductions other than sums
_COLUMN_OPS = ("prod", "max", "min")
#: maximum cached plans of a kernel
CACHE_SIZE = 1024


class Kernel:
    """A compiled reduction over certain axes; made by `kernel` and `several`.

    Called with arrays of its dtypes, of shapes that broadcast together, it returns the result, or a tuple of results
    for several terms.

    Attributes:
        terms: pairs of a reduction's name and an expression.
        inputs: the inputs' dtypes.
        axes: the reduced axes, or None for all.
        results: the results' dtypes.
    """

    def __init__(self, terms: tuple[tuple[str, Node], ...], inputs: tuple[np.dtype, ...],
                 axes: tuple[int, ...] | None, keepdims: bool) -> None:
        if not terms or not inputs:
            raise ValueError("a reduction kernel has at least one term and one input")
        for node in topological_order([to_accumulator(op, x) for op, x in terms]):
            if node.op == "input" and (node.const >= len(inputs) or inputs[node.const] != node.dtype):
                raise TypeError(f"{node} of {node.dtype} is not among inputs of {', '.join(map(str, inputs))}")
        _row_operation(terms, len(inputs))
        self.terms, self.inputs, self.axes, self.keepdims = terms, inputs, axes, keepdims
        self.results = tuple(result_dtype(op, x) for op, x in terms)
        self._plans: dict[tuple, tuple[tuple[int, ...], list[Launch]]] = {}

    def __repr__(self) -> str:
        return f"<kernel {', '.join(f'{op} of {x}' for op, x in self.terms)}, axes {self.axes}>"

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        if len(inputs) != len(self.inputs):
            raise TypeError(f"{self!r} takes {len(self.inputs)} arrays, not {len(inputs)}")
        arrays = [x if type(x) is np.ndarray else np.asarray(x, dtype)
                  for x, dtype in zip(inputs, self.inputs, strict=True)]
        key = tuple([each for x in arrays for each in (x.shape, x.strides, x.dtype)])
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= CACHE_SIZE:
                self._plans.clear()
            plan = self._plans[key] = self._plan(arrays)
        shape, program = plan
        results = tuple([np.empty(shape, dtype) for dtype in self.results])
        launching.run(program, [*results, *arrays])
        if out is not None:
            targets = (out,) if isinstance(out, np.ndarray) else tuple(out)
            for result, each in zip(results, targets, strict=True):
                if each.shape != result.shape or each.dtype != result.dtype:
                    raise ValueError(f"out of shape {each.shape}, {each.dtype} for a result of shape "
                                     f"{result.shape}, {result.dtype}")
                each[...] = result
            results = targets
        return results[0] if len(results) == 1 else results

    def _plan(self, arrays: Sequence[np.ndarray]) -> tuple[tuple[int, ...], list[Launch]]:
        for x, dtype in zip(arrays, self.inputs, strict=True):
            if x.dtype != dtype:
                raise TypeError(f"{self!r} takes {', '.join(map(str, self.inputs))}, not {x.dtype}")
        shape = iteration_space.broadcast([x.shape for x in arrays])
        reduced = _reduced(self.axes, len(shape))
        left = tuple(1 if dim in reduced else extent for dim, extent in enumerate(shape)
                     if self.keepdims or dim not in reduced)
        outs = [Spec.dense(left, dtype) for dtype in self.results]
        return left, launches(self.terms, outs, [Spec.of(x) for x in arrays], self.axes)


def _reduced(axes: int | Sequence[int] | None, rank: int) -> list[int]:
    """The reduced dimensions, in ascending order."""
    if axes is None:
        return list(range(rank))
    chosen = set()
    for axis in (axes,) if isinstance(axes, int) else axes:
        if not -rank <= axis < rank:
            raise IndexError(f"axis {axis} of an array of {rank} dimensions")
        chosen.add(axis % rank)
    return sorted(chosen)


_row_operations: dict[tuple, rows.Rows] = {}


def _row_operation(terms: Sequence[tuple[str, Node]], inputs: int) -> rows.Rows:
    """The row operation with one stage of these terms, whose results are per-row results."""
    key = (tuple(terms), inputs)
    operation = _row_operations.get(key)
    if operation is None:
        made = []
        for i, (op, x) in enumerate(terms):
            to_accumulator(op, x)
            made.append(cast(variable(inputs + i, rows.term_dtype(op, x)), result_dtype(op, x)))
        operation = _row_operations[key] = rows.Rows(stages=(tuple((op, x) for op, x in terms),), per_row=tuple(made))
    return operation


def launches(terms: Sequence[tuple[str, Node]], outs: Sequence[Spec], ins: Sequence[Spec],
             axes: int | Sequence[int] | None = None) -> list[Launch]:
    """The launches that reduce several expressions over the same axes in one pass.

    Args:
        terms: pairs of a reduction and an expression, whose variables index `ins`.
        outs: the outputs, of the remaining shape; reduced axes are left out or have extent 1.
        ins: the inputs, of shapes that broadcast together to the shape that is reduced.
        axes: the axes of that shape to reduce; None for all. Indices (argmax) over several axes are row-major.

    Returns:
        Launches over the pointers of `outs`, `ins` and scratch.

    Raises:
        TypeError: an output's dtype is not its result's (`reduction_ops.result_dtype`).
        ValueError: shapes do not match, or a reduction of no elements has no identity.

    >>> import numpy as np
    >>> from flambeau import codegen
    >>> from flambeau.runtime import launch
    >>> from flambeau.codegen.scalar.scalar_ir import variable
    >>> x, out = np.arange(6, dtype="f4").reshape(2, 3), np.zeros(2, "f4")
    >>> if codegen.available():
    ...     work = launches([("max", variable(0, "float32"))], [launch.Spec.of(out)], [launch.Spec.of(x)], 1)
    ...     launch.run(work, [out, x])
    """
    operation = _row_operation(terms, len(ins))
    shape = iteration_space.broadcast([each.shape for each in ins])
    rank = len(shape)
    reduced = _reduced(axes, rank)
    remaining = [dim for dim in range(rank) if dim not in reduced]
    left, with_ones = (tuple([shape[dim] for dim in remaining]),
                       tuple([1 if dim in reduced else extent for dim, extent in enumerate(shape)]))
    results = []
    for each in outs:
        if each.shape == left:
            results.append(each)
        elif each.shape == with_ones:
            results.append(Spec(left, tuple([each.strides[dim] for dim in remaining]), each.dtype))
        else:
            raise ValueError(f"a result of shape {each.shape} for a reduction of {shape} over {reduced}")
    spread = [iteration_space.broadcast_strides(each.shape, each.strides, shape) for each in ins]
    by_columns = (all(op == "sum" or (op in _COLUMN_OPS and x.dtype.kind == "f") for op, x in terms)
                  and _reduces_columns(shape, remaining, reduced, spread, ins))
    order = reduced + remaining if by_columns else remaining + reduced
    arrays = [Spec(tuple([shape[dim] for dim in order]), tuple([strides[dim] for dim in order]), each.dtype)
              for each, strides in zip(ins, spread, strict=True)]
    if by_columns:
        sums = rows.Rows(stages=(), column_sums=tuple([x for _, x in terms]), column_ops=tuple(
            [op for op, _ in terms]) if any(op != "sum" for op, _ in terms) else ())
        return rows.launches(sums, results, arrays, len(remaining))
    return rows.launches(operation, results, arrays, len(reduced))


def _reduces_columns(shape: tuple[int, ...], remaining: list[int], reduced: list[int], strides: Sequence[Sequence[int]],
          ins: Sequence[Spec]) -> bool:
    """Whether to reduce columns: the remaining dimensions are contiguous in memory and long enough for vectors."""
    if not remaining or not reduced or iteration_space.numel(shape) == 0:
        return False
    order = iteration_space.memory_order(shape, strides)
    along = order[-1]
    if along not in remaining or shape[along] < MIN_ROW:
        return False
    first = min(map(order.index, reduced))
    groups = iteration_space.numel([shape[dim] for dim in order[:first]])
    pitch = iteration_space.numel([shape[dim] for dim in order[max(map(order.index, reduced)) + 1:]])
    length = iteration_space.numel([shape[dim] for dim in reduced])
    if groups >= MAX_GROUPS and (pitch < MIN_PITCH or length <= MAX_GROUPS):
        return False
    return all(each[along] in (0, x.dtype.itemsize) for each, x in zip(strides, ins, strict=True)) and any(
        each[along] for each in strides)


_kernels: dict[tuple, Kernel] = {}


def several(terms: Sequence[tuple[str, Node]], inputs: Sequence[np.dtype | str | type],
            axes: int | Sequence[int] | None = None, keepdims: bool = False) -> Kernel:
    """The kernel that reduces several expressions over the same axes in one pass.

    Args:
        terms: pairs of a reduction (sum, mean, prod, max, min, any, all, argmax, argmin) and an expression.
        inputs: the inputs' dtypes.
        axes: the axes to reduce; all, if None.
        keepdims: whether reduced axes remain with extent 1.
    """
    chosen = None if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    key = (tuple(map(tuple, terms)), tuple(inputs), chosen, keepdims)
    cached = _kernels.get(key)
    if cached is None:
        pairs = tuple([(op, expression) for op, expression in terms])
        made = Kernel(pairs, tuple(variable(0, dtype).dtype for dtype in inputs), chosen, keepdims)
        cached = _kernels.setdefault(key, made)
    return cached


def kernel(expression: Node, op: str, inputs: Sequence[np.dtype | str | type],
           axes: int | Sequence[int] | None = None, keepdims: bool = False) -> Kernel:
    """The kernel that reduces an expression of arrays of the dtypes `inputs` over `axes`.

    >>> import numpy as np
    >>> from flambeau import codegen
    >>> from flambeau.codegen.rows import reduction
    >>> from flambeau.codegen.scalar.scalar_ir import variable
    >>> x = variable(0, "float32")
    >>> a = np.float32([[1, 2], [3, 4]])
    >>> print(reduction.kernel(x * x, "sum", ["float32"], axes=1)(a) if codegen.available() else (a * a).sum(1))
    [ 5. 25.]
    """
    return several([(op, expression)], inputs, axes, keepdims)
