"""Sums and other reductions of an expression over any axes, pairwise: kernels that read their arrays once.

An array is seen as dimensions that are kept and dimensions that are reduced. Where the innermost one is reduced, the
kernel goes *along* it with several vectors of accumulators; where it is kept, the kernel goes *across*: it adds
groups of rows, a vector of columns at a time. Either way the states of blocks merge as the bits of a binary counter
carry, which is pairwise summation: errors grow as the logarithm of the number of elements. What is cut up for the
threads is cut by the shape alone, and merged in one order: results do not depend on the number of threads.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import compiled, layout, target, threads
from .expression import Node, cost, ordered, text, variable

#: plans that a kernel remembers
PLANS = 1024
#: columns that are added up together, at most
COLUMNS = 512


class _Plan:
    __slots__ = ("call", "chunks", "scratch", "shape", "words")

    def __init__(self, shape: tuple[int, ...], call: Any, chunks: int, words: Sequence[int], scratch: int) -> None:
        self.shape, self.call, self.chunks, self.scratch = shape, call, chunks, scratch
        self.words = (ctypes.c_int64 * len(words))(*words)


class Kernel:
    """Compiled code for reductions over certain axes of arrays; `kernel` and `several` make it.

    Calling it with arrays of the dtypes it was made for, of shapes that broadcast together, returns the result, or a
    tuple of results where there are several terms.

    Attributes:
        terms: pairs of a reduction's name and an expression.
        inputs: the inputs' dtypes.
        axes: the axes that are reduced, or None for all.
        ir, asm: the code for contiguous arrays, reduced along their last dimension.
    """

    def __init__(self, terms: tuple[tuple[str, Node], ...], inputs: tuple[np.dtype, ...],
                 axes: tuple[int, ...] | None, keepdims: bool) -> None:
        if not terms or not inputs:
            raise ValueError("a kernel has at least one term and one input")
        from .monoid import Monoid

        self.terms, self.inputs, self.axes, self.keepdims = terms, inputs, axes, keepdims
        self._monoid = Monoid(terms)
        nodes = ordered(self._monoid.expressions)
        for node in nodes:
            if node.op == "input" and (node.const >= len(inputs) or inputs[node.const] != node.dtype):
                raise TypeError(f"{node} of {node.dtype} is not among inputs of {', '.join(map(str, inputs))}")
        if self._monoid.finds_places and axes is not None and len(axes) != 1:
            raise ValueError("a place is looked for along one axis, or in the whole array")
        self._recipe = "\n".join([" ".join(op for op, _ in terms), text([x for _, x in terms]),
                                  "in " + " ".join(map(str, inputs))])
        self._all = (*self._monoid.results, *inputs)
        self._sizes = [dtype.itemsize for dtype in self._all]
        widest = max([node.dtype.itemsize for node in nodes] + [each.itemsize for each in self._monoid.dtypes
                                                                if not self._monoid.finds_places])
        self._lanes = max(4, target.host().vector_bits // 8 // widest)
        work = cost(self._monoid.expressions)
        self._unroll = 2 if len(self._monoid.dtypes) > 1 else 8 if work <= 4 else 4 if work <= 24 else 2
        self._group = 1 if work > 24 else 4 if work > 8 or len(self._monoid.dtypes) > 1 else 8
        self._grain = max(1024, int(10_000 / (sum(each.itemsize for each in inputs) / 30 + (work + 1) / 20)))
        self._plans: dict[tuple, _Plan] = {}
        self._lock = threading.Lock()
        self._variants: dict[str, Any] = {}

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
            plan = self._plan(arrays)
            with self._lock:
                if len(self._plans) >= PLANS:
                    self._plans.clear()
                self._plans[key] = plan
        results = tuple([np.empty(plan.shape, dtype) for dtype in self._monoid.results])
        if plan.call is not None:
            scratch = np.empty(plan.scratch, np.uint8)
            plan.call(threads.pool(), plan.words, plan.chunks, *map(id, results), id(scratch), *map(id, arrays))
        elif results[0].size:
            for (op, _), result in zip(self.terms, results, strict=True):
                result[...] = self._monoid.empty(op)
        if out is not None:
            given = (out,) if isinstance(out, np.ndarray) else tuple(out)
            for result, each in zip(results, given, strict=True):
                if each.shape != result.shape or each.dtype != result.dtype:
                    raise ValueError(f"out of shape {each.shape}, {each.dtype} for a result of shape "
                                     f"{result.shape}, {result.dtype}")
                each[...] = result
            results = given
        return results[0] if len(results) == 1 else results

    @property
    def ir(self) -> str:
        return self._library("c" * len(self.inputs), True).ir

    @property
    def asm(self) -> str:
        return self._library("c" * len(self.inputs), True).asm

    def _reduced(self, rank: int) -> set[int]:
        if self.axes is None:
            return set(range(rank))
        found = set()
        for axis in self.axes:
            if not -rank <= axis < rank:
                raise IndexError(f"axis {axis} of an array of {rank} dimensions")
            found.add(axis % rank)
        return found

    def _plan(self, arrays: Sequence[np.ndarray]) -> _Plan:
        for x, dtype in zip(arrays, self.inputs, strict=True):
            if x.dtype != dtype:
                raise TypeError(f"{self!r} was made for {', '.join(map(str, self.inputs))}, not {x.dtype}")
        shape = layout.broadcast([x.shape for x in arrays])
        rank = len(shape)
        reduced = self._reduced(rank)
        kept = tuple(1 if dim in reduced else extent for dim, extent in enumerate(shape))
        result_shape = kept if self.keepdims else tuple(shape[dim] for dim in range(rank) if dim not in reduced)
        count = layout.elements([shape[dim] for dim in reduced])
        if layout.elements(shape) == 0:
            if count == 0 and layout.elements(result_shape):
                for op, _ in self.terms:
                    self._monoid.empty(op)
            return _Plan(result_shape, None, 0, (), 0)
        inputs = [layout.stretched(x.shape, x.strides, shape) for x in arrays]
        outputs = []
        for dtype in self._monoid.results:
            stride, strides = dtype.itemsize, [0] * rank
            for dim in reversed(range(rank)):
                if dim not in reduced:
                    strides[dim] = stride
                    stride *= shape[dim]
            outputs.append(strides)
        every = outputs + inputs
        order = list(range(rank)) if self._monoid.finds_places else layout.memory_order(shape, inputs)
        dims = layout.collapse(shape, every, order, lambda dim: dim in reduced)
        # which of the dimensions found are reduced: the outputs have no stride there
        def is_reduced(dim: int) -> bool:
            return dims.strides[0][dim] == 0

        extents = dims.extents
        if extents and extents[0] < self._lanes:
            longest = max(range(len(extents)), key=extents.__getitem__)
            same = is_reduced(longest) == is_reduced(0)
            if extents[longest] >= 4 * extents[0] and not (self._monoid.finds_places and same):
                dims = layout.bring_inside(dims, longest)
                extents = dims.extents
        along = not extents or is_reduced(0)
        of_reduced = [dim for dim in range(len(extents)) if is_reduced(dim)]
        of_kept = [dim for dim in range(len(extents)) if not is_reduced(dim)]
        kept_count = layout.elements(result_shape)
        build = self._along if along else self._across
        words, chunks, pieces = build(dims, of_kept, of_reduced, kept_count, count)
        steps = layout.steps(dims, self._sizes)
        pitch = -(-kept_count // self._lanes) * self._lanes
        scratch = pieces * pitch * sum(each.itemsize for each in self._monoid.dtypes) if pieces > 1 else 0
        outputs_steps = steps[:len(outputs)] if not along else "s" * len(outputs)
        return _Plan(result_shape, self._call(outputs_steps + steps[len(outputs):], along), chunks, words, scratch)

    def _along(self, dims: layout.Dims, kept: list[int], reduced: list[int], kept_count: int,
               count: int) -> tuple[list[int], int, int]:
        n = dims.extents[0] if dims.extents else 1
        pieces, piece = 1, count
        if kept_count < 16:
            pieces, piece = layout.blocks(count, self._grain)
        blocks, tall = layout.blocks(kept_count, max(1, self._grain // piece), 1)
        return self._words(dims, kept, reduced[1:], [n, 0, pieces, piece, blocks, tall, kept_count, count]
                           ), blocks * pieces, pieces

    def _across(self, dims: layout.Dims, kept: list[int], reduced: list[int], kept_count: int,
                count: int) -> tuple[list[int], int, int]:
        n = dims.extents[0]
        wide = -(-n // -(-n // COLUMNS))
        wide = min(-(-wide // self._lanes) * self._lanes, COLUMNS)
        across, rows = -(-n // wide), kept_count // n
        pieces, piece = 1, count
        if across * rows < 16:
            pieces, piece = layout.blocks(count, max(2 * self._group, self._grain // min(n, wide)), self._group)
        blocks, tall = layout.blocks(rows, max(1, self._grain // (min(wide, n) * piece)), 1)
        return self._words(dims, kept[1:], reduced, [n, wide, pieces, piece, blocks, tall, kept_count, count]
                           ), across * blocks * pieces, pieces

    def _words(self, dims: layout.Dims, kept: list[int], reduced: list[int], words: list[int]) -> list[int]:
        first = len(self._monoid.results)
        return [*words, layout.elements([dims.extents[dim] for dim in kept]),
                layout.elements([dims.extents[dim] for dim in reduced]), len(kept), len(reduced),
                *(each[0] if each else 0 for each in dims.strides),
                *(dims.extents[dim] for dim in kept), *(each[dim] for each in dims.strides for dim in kept),
                *(dims.extents[dim] for dim in reduced),
                *(each[dim] for each in dims.strides[first:] for dim in reduced)]

    def _call(self, steps: str, along: bool) -> Any:
        name = f"{steps} {along}"
        found = self._variants.get(name)
        if found is None:
            from . import calling

            count = len(self._all) + 1
            found = self._library(steps, along).function("call", *calling.call_type(count))
            self._variants[name] = found
        return found

    def _library(self, steps: str, along: bool) -> compiled.Library:
        if len(steps) == len(self.inputs):
            steps = "s" * len(self._monoid.results) + steps
        recipe = (f"reduction {steps} {'along' if along else 'across'} {self._lanes} {self._unroll} {self._group}\n"
                  f"{self._recipe}")
        return compiled.load(recipe, ("call",), lambda: _generate(self, steps, along))


def _generate(kernel: Kernel, steps: str, along: bool) -> str:
    from .reducing import Writer

    return Writer(kernel._monoid, kernel.inputs, steps, kernel._lanes, kernel._unroll, kernel._group,
                  COLUMNS).module(along)


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
    >>> from flambeau import jit
    >>> from flambeau.jit import reduction
    >>> from flambeau.jit.expression import variable
    >>> x = variable(0, "float32")
    >>> a = np.float32([[1, 2], [3, 4]])
    >>> print(reduction.kernel(x * x, "sum", ["float32"], axes=1)(a) if jit.available() else (a * a).sum(1))
    [ 5. 25.]
    """
    return several([(op, expression)], inputs, axes, keepdims)
