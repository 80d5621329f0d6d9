"""Row kernels: reductions over rows in several stages, with results for elements, rows, columns and for all, in one go.

Softmax, norms and their gradients read every element from memory once: the later stages find the row in the cache.

>>> import numpy as np
>>> from flambeau import codegen
>>> from flambeau.runtime import launch; from flambeau.codegen.rows import rows
>>> from flambeau.codegen.scalar.scalar_ir import exp, variable
>>> x, most, total = (variable(i, "float32") for i in range(3))
>>> softmax = rows.Rows(stages=((("max", x),), (("sum", exp(x - most)),)), elementwise=(exp(x - most) / total,))
>>> a = np.float32([[0, 0], [1000, 0]])
>>> out = np.float32([[.5, .5], [1, 0]])
>>> if codegen.available():
...     launch.run(rows.launches(softmax, [launch.Spec.of(out)], [launch.Spec.of(a)], 1), [out, a])
>>> print(out)
[[0.5 0.5]
 [1.  0. ]]
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...runtime import compilation, target
from ...runtime.launch import Launch, Spec
from .. import iteration_space
from ..scalar.reduction_ops import empty, result_dtype
from ..scalar.scalar_ir import canonical_text, cost, topological_order
from . import loop_nest as courses
from .loop_nest import Course, Operands
from .schedule import Rows, Schedule, in_place, schedule, term_dtype
from .softmax import shared

#: lists of launches that a kernel remembers
REMEMBERED = 1024
#: what an element costs, at most, where reading it counts
CHEAP = 8
#: what it costs to read an element that lies apart from its neighbours, beside an addition
GATHERED = 12


class _Code(NamedTuple):
    """The compiled functions for one kind of course; `ends` are those that are called after all chunks."""

    library: compilation.Library
    ends: dict[str, compilation.Symbol]
    regions: list[tuple[str, int]]
    passes: list[int]


class _Kernel:
    """The code for `Rows` over inputs of certain dtypes, and the lists of launches that were asked for."""

    def __init__(self, rows: Rows, inputs: tuple[np.dtype, ...]) -> None:
        self.inputs = inputs
        self.rows = rows = shared(rows, len(inputs))
        self.operands = Operands(len(rows.elementwise), len(rows.per_row), len(rows.column_sums),
                                 len(rows.totals) + len(rows.row_totals), len(inputs))
        sums = (*rows.column_sums, *rows.totals, *rows.row_totals)
        self.outputs = (*(x.dtype for x in (*rows.elementwise, *rows.per_row)),
                        *(result_dtype(rows.column_op(i), x) for i, x in enumerate(rows.column_sums)),
                        *(result_dtype("sum", x) for x in (*rows.totals, *rows.row_totals)))
        self.dtypes = (*self.outputs, *inputs)
        self.terms = [pair for stage in rows.stages for pair in stage]
        expressions = [*(x for _, x in self.terms), *rows.elementwise, *rows.per_row, *sums]
        self.nodes = topological_order(expressions)
        self._check()
        self.sizes = [dtype.itemsize for dtype in self.dtypes]
        floats = [max(4, node.dtype.itemsize) for node in self.nodes if node.dtype.kind not in "biu"]
        widest = max(floats or [node.dtype.itemsize for node in self.nodes], default=8)
        self.lanes = max(4, target.host().vector_bits // 8 // widest)
        self.tracks_index = any(op.startswith("arg") for op, _ in self.terms)
        moved = sum(self.sizes[:self.operands.elementwise]) + sum(each.itemsize for each in inputs)
        work = cost(expressions) + len(self.terms) + len(sums)
        self.cheap = work <= CHEAP
        # about ten microseconds of one thread: bytes at 30 a nanosecond, additions at 20
        self.grain = max(512, int(10_000 / (moved / 30 + work / 20)))
        stages = "; ".join(" ".join(op for op, _ in stage) for stage in rows.stages)
        counts = f"{[len(each) for each in rows[1:-1]]}{' '.join(rows.column_ops)}"
        self.recipe = f"{stages}\n{counts}\n{canonical_text(expressions)}\nin {' '.join(map(str, inputs))}"
        self.schedules: dict[tuple, Schedule] = {}
        self.codes: dict[str, _Code] = {}
        self.lists: dict[tuple, list[Launch]] = {}

    def _check(self) -> None:
        first = len(self.inputs)
        for node in self.nodes:
            if node.op != "input":
                continue
            if node.const >= first + len(self.terms):
                raise TypeError(f"{node} is neither one of {first} inputs nor one of {len(self.terms)} results")
            dtype = self.inputs[node.const] if node.const < first else term_dtype(*self.terms[node.const - first])
            if node.dtype != dtype:
                raise TypeError(f"{node} of {node.dtype} stands for what is of {dtype}")

    def launches(self, shape: tuple[int, ...], inner: int, strides: list[list[int]]) -> list[Launch]:
        """The work over a shape whose last `inner` dimensions are a row's."""
        found = courses.course(shape, inner, strides, self.operands, self.sizes, self.lanes, self.grain,
                               self.tracks_index, target.host().vector_bits >= 256, self.cheap)
        if found.n == 0 and found.rows:
            for op, _ in self.terms:
                empty(op)
        code = self._code(found)
        plan = courses.plan(found, self.operands, code.regions, self.grain)
        library, words = code.library, tuple(plan.words)
        if not found.whole:
            return [Launch(library, library.symbol(f"pass{k}"), plan.chunks, words,
                           code.ends.get(f"then{k}", 0), plan.scratch) for k in code.passes]
        finish = code.ends.get("finish", 0)
        body = library.symbol("body")
        if plan.finishing == 1:
            return [Launch(library, body, plan.chunks, words, finish, plan.scratch)]
        return [Launch(library, body, plan.chunks, words, 0, plan.scratch),
                Launch(library, finish, plan.finishing, words, 0, plan.scratch)]

    def _schedule(self, found: Course, keep: bool) -> Schedule:
        first = len(self.outputs)
        reading = tuple(GATHERED if step == "s" and not same else 0
                        for step, same in zip(found.steps[first:], found.of_row, strict=True))
        key = (found.of_row, reading, keep)
        made = self.schedules.get(key)
        if made is None:
            made = self.schedules[key] = schedule(self.rows, found.of_row, reading, keep)
        return made

    def _code(self, found: Course) -> _Code:
        keep = found.whole and found.n <= courses.KEPT_ELEMENTS
        made = self._schedule(found, keep)
        if keep:
            row = (found.n + found.lanes) * (found.lanes if found.across else 1)
            if sum(node.dtype.itemsize for node in made.buffers) * row > courses.KEPT_BYTES:
                keep, made = False, self._schedule(found, False)
        keep = keep and bool(made.buffers)
        name = " ".join([str(found.lanes), found.steps, "".join("-r"[each] for each in found.of_row),
                         str(found.tail), *(
            word for word, said in [("across", found.across), ("whole", found.whole), ("long", found.long),
                                    ("flat", found.flat_rows), ("even", found.flat_elements), ("keep", keep),
                               ("past", found.past)] if said)])
        code = self.codes.get(name)
        if code is None:
            code = self.codes[name] = self._compiled(name, made, found)
        return code

    def _compiled(self, name: str, made: Schedule, found: Course) -> _Code:
        from . import code as rows_code
        from .function import Kind

        kind = Kind(made, self.rows, self.operands, self.dtypes, found)
        names = rows_code.names(kind)
        library = compilation.load(f"rows {name}\n{self.recipe}", names, lambda: rows_code.module(kind), "few")
        ends = {each: library.symbol(each) for each in names if each.startswith(("finish", "then"))}
        return _Code(library, ends, [(holds, dtype.itemsize) for holds, dtype in kind.regions], kind.passes)


_kernels: dict[tuple, _Kernel] = {}
_lock = threading.Lock()


def launches(rows: Rows, outs: Sequence[Spec], ins: Sequence[Spec], inner: int) -> list[Launch]:
    """The work of a row kernel over arrays of one shape, the last `inner` dimensions of which are a row's.

    Args:
        rows: what is computed.
        outs: where the results are written, in the order of `Rows`: elementwise ones (of the full shape), those of
            the rows (of the outer dimensions' shape), column sums (of the inner dimensions' shape), totals and row
            totals (of no dimensions). The dimensions that are left out may be there with extent 1 instead.
        ins: the inputs, of shapes that broadcast to the full shape.
        inner: how many dimensions a row has.

    Returns:
        Launches over the pointers of `outs`, of `ins`, and of the scratch memory that they ask for. An elementwise
        output that `in_place` names may share memory with an input, where both lie exactly alike; others may not.
        None where nothing is to be written.

    Raises:
        TypeError: an output's dtype is not its result's (a sum's is `terms.result_dtype("sum", expression)`), or
            a variable stands for nothing, or for what is of another dtype.
        ValueError: shapes that do not fit, results that are not known yet, or a reduction that no elements have.
    """
    key = (rows, tuple([each.dtype for each in ins]))
    kernel = _kernels.get(key)
    if kernel is None:
        kernel = _kernels.setdefault(key, _Kernel(*key))
    asked = (tuple(outs), tuple(ins), inner)
    found = kernel.lists.get(asked)
    if found is None:
        found = _planned(kernel, outs, ins, inner)
        with _lock:
            if len(kernel.lists) >= REMEMBERED:
                kernel.lists.clear()
            kernel.lists[asked] = found
    return list(found)


def _planned(kernel: _Kernel, outs: Sequence[Spec], ins: Sequence[Spec], inner: int) -> list[Launch]:
    if len(outs) != len(kernel.outputs):
        raise ValueError(f"{len(kernel.outputs)} results into {len(outs)} arrays")
    for each, dtype in zip(outs, kernel.outputs, strict=True):
        if each.dtype != dtype:
            raise TypeError(f"an output of {each.dtype} for a result of {dtype}")
    rows, operands = kernel.rows, kernel.operands
    shape = outs[0].shape if operands.elementwise else iteration_space.broadcast([each.shape for each in ins])
    rank = len(shape)
    if not 0 <= inner <= rank:
        raise ValueError(f"rows of {inner} dimensions in an array of {rank}")
    split, columns = rank - inner, operands.elementwise + operands.per_row
    strides = []
    for i, each in enumerate(outs):
        if i < operands.elementwise:
            if each.shape != shape:
                raise ValueError(f"an output of shape {each.shape} for elements of shape {shape}")
            strides.append(iteration_space.broadcast_strides(shape, each.strides, shape))
        else:
            first, last = (0, split) if i < columns else (split, rank) if i < columns + operands.columns else (0, 0)
            strides.append(_strides_of_part(shape, first, last, each))
    strides += [iteration_space.checked_broadcast_strides(each.shape, each.strides, shape) for each in ins]
    if outs and not any(each.size for each in outs):
        return []
    if not rows.stages and not rows.per_row and not rows.column_sums and not rows.row_totals:
        inner = rank  # where it is all one, everything is one row
    return kernel.launches(shape, inner, strides)


def _strides_of_part(shape: tuple[int, ...], first: int, last: int, out: Spec) -> list[int]:
    """The strides over the whole shape of a result that has only dimensions from `first` to `last`."""
    part = shape[first:last]
    ones = tuple(extent if first <= dim < last else 1 for dim, extent in enumerate(shape))
    if out.shape not in (part, ones):
        raise ValueError(f"a result of shape {out.shape}, which should be {part}")
    strides = out.strides if out.shape == part else out.strides[first:last]
    kept = [0 if extent == 1 else stride for extent, stride in zip(part, strides, strict=True)]
    return [0] * first + kept + [0] * (len(shape) - last)


__all__ = ["Rows", "in_place", "launches", "term_dtype"]
