"""Row kernel launches: multi-stage reductions over rows, fused with elementwise, per-row, column and total results.

Softmax, norms and their gradients read each element from memory once: later stages read the row from the cache.

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
from . import loop_nest
from .loop_nest import LoopNest, Operands
from .schedule import Rows, Schedule, in_place, schedule, term_dtype
from .softmax import share_exponentials

#: maximum cached launch lists of a kernel
CACHE_SIZE = 1024
#: maximum cost of an element for which memory access dominates
CHEAP = 8
#: cost of a strided element's load, in additions
STRIDED_LOAD_COST = 12


class _Code(NamedTuple):
    """The compiled functions for one kind of loop nest; `ends` are those that run after all chunks."""

    library: compilation.Library
    ends: dict[str, compilation.Symbol]
    regions: list[tuple[str, int]]
    passes: list[int]


class _Kernel:
    """The compiled code of `Rows` for inputs of certain dtypes, and its cached launch lists."""

    def __init__(self, rows: Rows, inputs: tuple[np.dtype, ...]) -> None:
        self.inputs = inputs
        self.rows = rows = share_exponentials(rows, len(inputs))
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
        # about 10 µs of one thread, at 30 bytes and 20 additions per ns
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
                raise TypeError(f"{node} has dtype {node.dtype}, its input or result {dtype}")

    def launches(self, shape: tuple[int, ...], inner: int, strides: list[list[int]]) -> list[Launch]:
        """The launches over a shape whose last `inner` dimensions form a row."""
        nest = loop_nest.choose_loop_nest(shape, inner, strides, self.operands, self.sizes, self.lanes, self.grain,
                               self.tracks_index, target.host().vector_bits >= 256, self.cheap)
        if nest.n == 0 and nest.rows:
            for op, _ in self.terms:
                empty(op)
        code = self._code(nest)
        plan = loop_nest.plan(nest, self.operands, code.regions, self.grain)
        library, words = code.library, tuple(plan.words)
        if not nest.entire_rows:
            return [Launch(library, library.symbol(f"pass{k}"), plan.chunks, words,
                           code.ends.get(f"then{k}", 0), plan.scratch) for k in code.passes]
        finish = code.ends.get("finish", 0)
        body = library.symbol("body")
        if plan.finishing == 1:
            return [Launch(library, body, plan.chunks, words, finish, plan.scratch)]
        return [Launch(library, body, plan.chunks, words, 0, plan.scratch),
                Launch(library, finish, plan.finishing, words, 0, plan.scratch)]

    def _schedule(self, nest: LoopNest, keep: bool) -> Schedule:
        first = len(self.outputs)
        reading = tuple(STRIDED_LOAD_COST if step == "s" and not same else 0
                        for step, same in zip(nest.steps[first:], nest.of_row, strict=True))
        key = (nest.of_row, reading, keep)
        made = self.schedules.get(key)
        if made is None:
            made = self.schedules[key] = schedule(self.rows, nest.of_row, reading, keep)
        return made

    def _code(self, nest: LoopNest) -> _Code:
        keep = nest.entire_rows and nest.n <= loop_nest.MAX_BUFFERED_ROW
        made = self._schedule(nest, keep)
        if keep:
            row = (nest.n + nest.lanes) * (nest.lanes if nest.across else 1)
            if sum(node.dtype.itemsize for node in made.buffers) * row > loop_nest.MAX_BUFFER_BYTES:
                keep, made = False, self._schedule(nest, False)
        keep = keep and bool(made.buffers)
        name = " ".join([str(nest.lanes), nest.steps, "".join("-r"[each] for each in nest.of_row),
                         str(nest.tail), *(
            word for word, applies in [("across", nest.across), ("entire rows", nest.entire_rows), ("long", nest.long),
                                    ("flat", nest.flat_rows), ("even", nest.flat_elements), ("keep", keep),
                               ("nontemporal", nest.nontemporal)] if applies)])
        code = self.codes.get(name)
        if code is None:
            code = self.codes[name] = self._compiled(name, made, nest)
        return code

    def _compiled(self, name: str, made: Schedule, nest: LoopNest) -> _Code:
        from . import code
        from .function import Kind

        kind = Kind(made, self.rows, self.operands, self.dtypes, nest)
        names = code.names(kind)
        library = compilation.load(f"rows {name}\n{self.recipe}", names, lambda: code.module(kind), "few")
        ends = {each: library.symbol(each) for each in names if each.startswith(("finish", "then"))}
        return _Code(library, ends, [(holds, dtype.itemsize) for holds, dtype in kind.regions], kind.passes)


_kernels: dict[tuple, _Kernel] = {}
_lock = threading.Lock()


def launches(rows: Rows, outs: Sequence[Spec], ins: Sequence[Spec], inner: int) -> list[Launch]:
    """The launches of a row kernel over arrays of one shape, whose last `inner` dimensions form a row.

    Args:
        rows: the row operation.
        outs: the outputs in the order of `Rows`: elementwise (full shape), per row (outer dimensions), column sums
            (inner dimensions), totals and row totals (0-d). Missing dimensions may have extent 1 instead.
        ins: the inputs, of shapes that broadcast to the full shape.
        inner: the number of dimensions of a row.

    Returns:
        Launches over the pointers of `outs`, `ins` and scratch. An elementwise output for which `in_place` is true may
        alias an input of exactly the same layout; others must not. An empty list where nothing is to be written.

    Raises:
        TypeError: an output's dtype is not its result's (a sum's is `reduction_ops.result_dtype("sum", expression)`),
            or a variable has no input or result, or one of another dtype.
        ValueError: shapes do not match, a result is used too early, or a reduction of no elements has no identity.
    """
    key = (rows, tuple([each.dtype for each in ins]))
    kernel = _kernels.get(key)
    if kernel is None:
        kernel = _kernels.setdefault(key, _Kernel(*key))
    signature = (tuple(outs), tuple(ins), inner)
    cached = kernel.lists.get(signature)
    if cached is None:
        cached = _planned(kernel, outs, ins, inner)
        with _lock:
            if len(kernel.lists) >= CACHE_SIZE:
                kernel.lists.clear()
            kernel.lists[signature] = cached
    return list(cached)


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
        inner = rank  # no result depends on the row: treat everything as one row
    return kernel.launches(shape, inner, strides)


def _strides_of_part(shape: tuple[int, ...], first: int, last: int, out: Spec) -> list[int]:
    """The strides over the full shape of a result that has only dimensions from `first` to `last`."""
    part = shape[first:last]
    ones = tuple(extent if first <= dim < last else 1 for dim, extent in enumerate(shape))
    if out.shape not in (part, ones):
        raise ValueError(f"a result of shape {out.shape}, which should be {part}")
    strides = out.strides if out.shape == part else out.strides[first:last]
    selected = [0 if extent == 1 else stride for extent, stride in zip(part, strides, strict=True)]
    return [0] * first + selected + [0] * (len(shape) - last)


__all__ = ["Rows", "in_place", "launches", "term_dtype"]
