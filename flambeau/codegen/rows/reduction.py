"""Sums and other reductions of expressions over any axes, pairwise, several in one pass: rows of what is reduced.

The dimensions that are reduced are a row's, the others tell the rows apart (`rows`). Errors of sums grow as the
logarithm of the number of elements, and results do not depend on the number of threads.
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

#: elements of rows whose columns are summed, at least
SIDE = 64
#: where so many parts are reduced each by itself, going down all of them at once would need more memory than is near:
#: a few columns at a time are quicker, unless many elements lie this far from each other
GROUPS, PITCH = 16, 1024
#: what is done with columns besides adding them up, as rows come by
_COLUMNS = ("prod", "max", "min")
#: plans that a kernel remembers
PLANS = 1024


class Kernel:
    """Compiled code for reductions over certain axes of arrays; `kernel` and `several` make it.

    Calling it with arrays of the dtypes it was made for, of shapes that broadcast together, returns the result, or a
    tuple of results where there are several terms.

    Attributes:
        terms: pairs of a reduction's name and an expression.
        inputs: the inputs' dtypes.
        axes: the axes that are reduced, or None for all.
        results: the results' dtypes.
    """

    def __init__(self, terms: tuple[tuple[str, Node], ...], inputs: tuple[np.dtype, ...],
                 axes: tuple[int, ...] | None, keepdims: bool) -> None:
        if not terms or not inputs:
            raise ValueError("a kernel has at least one term and one input")
        for node in topological_order([to_accumulator(op, x) for op, x in terms]):
            if node.op == "input" and (node.const >= len(inputs) or inputs[node.const] != node.dtype):
                raise TypeError(f"{node} of {node.dtype} is not among inputs of {', '.join(map(str, inputs))}")
        _work(terms, len(inputs))
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
            if len(self._plans) >= PLANS:
                self._plans.clear()
            plan = self._plans[key] = self._plan(arrays)
        shape, work = plan
        results = tuple([np.empty(shape, dtype) for dtype in self.results])
        launching.run(work, [*results, *arrays])
        if out is not None:
            given = (out,) if isinstance(out, np.ndarray) else tuple(out)
            for result, each in zip(results, given, strict=True):
                if each.shape != result.shape or each.dtype != result.dtype:
                    raise ValueError(f"out of shape {each.shape}, {each.dtype} for a result of shape "
                                     f"{result.shape}, {result.dtype}")
                each[...] = result
            results = given
        return results[0] if len(results) == 1 else results

    def _plan(self, arrays: Sequence[np.ndarray]) -> tuple[tuple[int, ...], list[Launch]]:
        for x, dtype in zip(arrays, self.inputs, strict=True):
            if x.dtype != dtype:
                raise TypeError(f"{self!r} was made for {', '.join(map(str, self.inputs))}, not {x.dtype}")
        shape = iteration_space.broadcast([x.shape for x in arrays])
        reduced = _reduced(self.axes, len(shape))
        left = tuple(1 if dim in reduced else extent for dim, extent in enumerate(shape)
                     if self.keepdims or dim not in reduced)
        outs = [Spec.dense(left, dtype) for dtype in self.results]
        return left, launches(self.terms, outs, [Spec.of(x) for x in arrays], self.axes)


def _reduced(axes: int | Sequence[int] | None, rank: int) -> list[int]:
    """The dimensions that are reduced, in order."""
    if axes is None:
        return list(range(rank))
    found = set()
    for axis in (axes,) if isinstance(axes, int) else axes:
        if not -rank <= axis < rank:
            raise IndexError(f"axis {axis} of an array of {rank} dimensions")
        found.add(axis % rank)
    return sorted(found)


_works: dict[tuple, rows.Rows] = {}


def _work(terms: Sequence[tuple[str, Node]], inputs: int) -> rows.Rows:
    """One stage of these terms, whose results are those of the rows."""
    key = (tuple(terms), inputs)
    found = _works.get(key)
    if found is None:
        made = []
        for i, (op, x) in enumerate(terms):
            to_accumulator(op, x)
            made.append(cast(variable(inputs + i, rows.term_dtype(op, x)), result_dtype(op, x)))
        found = _works[key] = rows.Rows(stages=(tuple((op, x) for op, x in terms),), per_row=tuple(made))
    return found


def launches(terms: Sequence[tuple[str, Node]], outs: Sequence[Spec], ins: Sequence[Spec],
             axes: int | Sequence[int] | None = None) -> list[Launch]:
    """The work of reducing several expressions over the same axes in one pass: no arrays are needed yet.

    Args:
        terms: pairs of a reduction and an expression, whose variables are the positions in `ins`.
        outs: where the results are written: of the shape that is left, reduced axes left out or of extent 1.
        ins: the inputs, of shapes that broadcast together to the shape that is reduced.
        axes: the axes of that shape to reduce; all, if None. Places in several are counted row by row.

    Returns:
        Launches over the pointers of `outs`, of `ins`, and of the scratch memory that they ask for.

    Raises:
        TypeError: an output's dtype is not its result's (`terms.result_dtype`).
        ValueError: shapes that do not fit, or a reduction that no elements have.

    >>> import numpy as np
    >>> from flambeau import codegen
    >>> from flambeau.runtime import launch
    >>> from flambeau.codegen.scalar.scalar_ir import variable
    >>> x, out = np.arange(6, dtype="f4").reshape(2, 3), np.zeros(2, "f4")
    >>> if codegen.available():
    ...     work = launches([("max", variable(0, "float32"))], [launch.Spec.of(out)], [launch.Spec.of(x)], 1)
    ...     launch.run(work, [out, x])
    """
    work = _work(terms, len(ins))
    shape = iteration_space.broadcast([each.shape for each in ins])
    rank = len(shape)
    reduced = _reduced(axes, rank)
    kept = [dim for dim in range(rank) if dim not in reduced]
    left, with_ones = (tuple([shape[dim] for dim in kept]),
                       tuple([1 if dim in reduced else extent for dim, extent in enumerate(shape)]))
    results = []
    for each in outs:
        if each.shape == left:
            results.append(each)
        elif each.shape == with_ones:
            results.append(Spec(left, tuple([each.strides[dim] for dim in kept]), each.dtype))
        else:
            raise ValueError(f"a result of shape {each.shape} for a reduction of {shape} over {reduced}")
    spread = [iteration_space.broadcast_strides(each.shape, each.strides, shape) for each in ins]
    down = all(op == "sum" or (op in _COLUMNS and x.dtype.kind == "f") for op, x in terms) and _down(
        shape, kept, reduced, spread, ins)
    order = reduced + kept if down else kept + reduced
    arrays = [Spec(tuple([shape[dim] for dim in order]), tuple([strides[dim] for dim in order]), each.dtype)
              for each, strides in zip(ins, spread, strict=True)]
    if down:
        sums = rows.Rows(stages=(), column_sums=tuple([x for _, x in terms]), column_ops=tuple(
            [op for op, _ in terms]) if any(op != "sum" for op, _ in terms) else ())
        return rows.launches(sums, results, arrays, len(kept))
    return rows.launches(work, results, arrays, len(reduced))


def _down(shape: tuple[int, ...], kept: list[int], reduced: list[int], strides: Sequence[Sequence[int]],
          ins: Sequence[Spec]) -> bool:
    """Whether reductions are those of columns: what is kept lies together in memory, and is long enough for vectors."""
    if not kept or not reduced or iteration_space.numel(shape) == 0:
        return False
    order = iteration_space.memory_order(shape, strides)
    along = order[-1]
    if along not in kept or shape[along] < SIDE:
        return False
    first = min(map(order.index, reduced))
    groups = iteration_space.numel([shape[dim] for dim in order[:first]])
    pitch = iteration_space.numel([shape[dim] for dim in order[max(map(order.index, reduced)) + 1:]])
    if groups >= GROUPS and (pitch < PITCH or iteration_space.numel([shape[dim] for dim in reduced]) <= GROUPS):
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
        keepdims: whether reduced axes stay, with extent 1.
    """
    chosen = None if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    key = (tuple(map(tuple, terms)), tuple(inputs), chosen, keepdims)
    found = _kernels.get(key)
    if found is None:
        pairs = tuple([(op, expression) for op, expression in terms])
        made = Kernel(pairs, tuple(variable(0, dtype).dtype for dtype in inputs), chosen, keepdims)
        found = _kernels.setdefault(key, made)
    return found


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
