"""One pass over memory: kernels that compute expressions for every element of arrays that broadcast together.

>>> import numpy as np
>>> from flambeau import codegen
>>> from flambeau.codegen.elementwise import elementwise
>>> from flambeau.codegen.scalar.scalar_ir import variable, maximum
>>> x, y = variable(0, "float32"), variable(1, "float32")
>>> if codegen.available():
...     print(elementwise.kernel([maximum(x * y, 0)], ["float32", "float32"])(np.arange(-1, 2, dtype="f4"),
...                                                                          np.float32([[2], [3]])))
... else:
...     print(np.float32([[0, 0, 2], [0, 0, 3]]))
[[0. 0. 2.]
 [0. 0. 3.]]
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...runtime import compilation, nontemporal_stores, target, thread_pool
from ...runtime.launch import Launch, Spec
from .. import iteration_space
from ..llvm.tails import ANY, Ending, ending, lengths
from ..scalar.scalar_ir import Node, cost, ordered, text, variable

#: plans that a kernel remembers, for so many layouts of its arrays
PLANS = 1024
#: columns of a block where an operand strides: the lines of memory that one row touches serve the next rows
NARROW = 64


class _Course(NamedTuple):
    """How operands step along the inner dimension, whether there are outer ones, its runs, and a call's plan."""

    steps: str
    rows: bool
    ending: Ending
    chunks: int
    words: list[int]


class _Plan:
    """How arrays of certain shapes and strides are computed: by which code, over which loops, in how many chunks."""

    __slots__ = ("body", "call", "chunks", "order", "shape", "words")

    def __init__(self, shape: tuple[int, ...], order: list[int] | None, call: Any, body: int, chunks: int,
                 words: Sequence[int]) -> None:
        self.shape = shape
        self.order = order  # of the outputs' dimensions in memory, slowest first, where it is not the usual
        self.call = call  # None where there is nothing to compute
        self.body = body
        self.chunks = chunks
        self.words = (ctypes.c_int64 * len(words))(*words)


class Kernel:
    """Compiled code for expressions over arrays; `kernel` makes it.

    Calling it with arrays of the dtypes it was made for, of shapes that broadcast together, returns the outputs'
    array, or a tuple of them where there are several. `out` gives them instead: arrays of the full shape, which may
    be inputs too. Python numbers stand for arrays without dimensions.

    Attributes:
        outputs: the expressions.
        inputs: the inputs' dtypes.
        ir, asm: the code for contiguous arrays of one shape, as generated, and as the machine's instructions.
    """

    def __init__(self, outputs: tuple[Node, ...], inputs: tuple[np.dtype, ...]) -> None:
        if not outputs:
            raise ValueError("a kernel has at least one output")
        nodes = ordered(outputs)
        for node in nodes:
            if node.op == "input" and (node.const >= len(inputs) or inputs[node.const] != node.dtype):
                raise TypeError(f"{node} of {node.dtype} is not among inputs of {', '.join(map(str, inputs))}")
        self.outputs, self.inputs = outputs, inputs
        self.dtypes = tuple(node.dtype for node in outputs)
        self._recipe = text(outputs) + "\nin " + " ".join(map(str, inputs))
        self._all = self.dtypes + inputs
        self._sizes = [dtype.itemsize for dtype in self._all]
        widest = max(node.dtype.itemsize for node in nodes)
        self._lanes = max(4, target.host().vector_bits // 8 // widest)
        work = cost(outputs)
        self._unroll = 4 if work <= 4 else 2 if work <= 24 else 1
        self._waits = work <= nontemporal_stores.MAX_WORK
        # about ten microseconds of one thread: bytes at 30 a nanosecond, additions at 20
        self._grain = max(512, int(10_000 / (sum(self._sizes) / 30 + work / 20)))
        self._info: Any = None
        self._plans: dict[tuple, _Plan] = {}
        self._bodies: dict[str, tuple[compilation.Library, compilation.Symbol]] = {}
        self._flat: Callable[..., int] | None = None
        self._call: Callable[..., None] | None = None
        self._lock = threading.Lock()
        self._number = len(inputs)
        self._single = self.dtypes[0] if len(outputs) == 1 else None

    def __repr__(self) -> str:
        return f"<kernel {', '.join(map(repr, self.outputs))}>"

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        if len(inputs) != self._number:
            raise TypeError(f"{self!r} takes {self._number} arrays, not {len(inputs)}")
        for x in inputs:
            if type(x) is not np.ndarray:
                inputs = tuple(map(self._array, inputs, self.inputs))
                break
        flat = self._flat or self._flat_call()
        if out is None:
            first = inputs[0]
            # memory is asked for only once, where it is much: a block given back and taken again costs its pages
            if first.size < 4096 or _alike(inputs):
                if self._single is not None:
                    result = np.empty(first.shape, self._single)
                    if not flat(thread_pool.pool(), self._info, id(result), *map(id, inputs)):
                        return result
                else:
                    results = tuple([np.empty(first.shape, dtype) for dtype in self.dtypes])
                    if not flat(thread_pool.pool(), self._info, *map(id, results), *map(id, inputs)):
                        return results
            results = self._general(inputs)
        else:
            results = (out,) if isinstance(out, np.ndarray) else tuple(out)
            if len(results) != len(self.outputs) or any(type(each) is not np.ndarray for each in results):
                raise TypeError(f"out takes {len(self.outputs)} arrays")
            if flat(thread_pool.pool(), self._info, *map(id, results), *map(id, inputs)):
                self._into(inputs, results)
        return results[0] if self._single is not None else results

    @property
    def ir(self) -> str:
        return self._library("c" * len(self._all), False).ir

    @property
    def asm(self) -> str:
        return self._library("c" * len(self._all), False).asm

    @staticmethod
    def _array(x: Any, dtype: np.dtype) -> np.ndarray:
        if isinstance(x, (np.ndarray, np.generic)):
            return np.asarray(x)
        if isinstance(x, (bool, int, float)):
            return np.array(x, dtype)
        raise TypeError(f"a kernel takes arrays and numbers, not {type(x).__name__}")

    def _flat_call(self) -> Callable[..., int]:
        from ..llvm import kernel_entry

        count = len(self._all)
        _, body = self._body("c" * count, False, ANY)
        self._info = (ctypes.c_int64 * (2 + count))(self._grain, body.address, *map(id, self._all))
        self._flat = kernel_entry.flat(len(self.outputs), self._sizes).function("flat", *kernel_entry.flat_type(count))
        return self._flat

    def _general(self, inputs: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """New outputs, laid out in memory as the inputs are."""
        key = tuple([each for x in inputs for each in (x.shape, x.strides, x.dtype)])
        plan = self._plans.get(key)
        if plan is None:
            self._check(inputs)
            shape = iteration_space.broadcast([x.shape for x in inputs])
            strides = [iteration_space.stretched(x.shape, x.strides, shape) for x in inputs]
            order = iteration_space.memory_order(shape, strides)
            usual = order == list(range(len(shape)))
            outputs = [self._empty(shape, None if usual else order, dtype) for dtype in self.dtypes]
            plan = self._planned(key, shape, None if usual else order, outputs, strides)
        results = tuple([self._empty(plan.shape, plan.order, dtype) for dtype in self.dtypes])
        if plan.call is not None:
            plan.call(thread_pool.pool(), plan.body, plan.words, plan.chunks, *map(id, results), *map(id, inputs))
        return results

    @staticmethod
    def _empty(shape: tuple[int, ...], order: list[int] | None, dtype: np.dtype) -> np.ndarray:
        if order is None:
            return np.empty(shape, dtype)
        place = sorted(range(len(order)), key=order.__getitem__)
        return np.empty([shape[dim] for dim in order], dtype).transpose(place)

    def _check(self, inputs: Sequence[np.ndarray]) -> None:
        for x, dtype in zip(inputs, self.inputs, strict=True):
            if x.dtype != dtype:
                raise TypeError(f"{self!r} was made for {', '.join(map(str, self.inputs))}, not {x.dtype}")

    def _into(self, inputs: tuple[np.ndarray, ...], outputs: tuple[np.ndarray, ...]) -> None:
        """Compute into arrays that are there already."""
        key = tuple([each for x in (*inputs, *outputs) for each in (x.shape, x.strides, x.dtype)])
        plan = self._plans.get(key)
        if plan is None:
            self._check(inputs)
            shape = iteration_space.broadcast([x.shape for x in inputs])
            for result, dtype in zip(outputs, self.dtypes, strict=True):
                if result.dtype != dtype:
                    raise TypeError(f"out of {result.dtype} for a result of {dtype}")
                if iteration_space.broadcast([shape, result.shape]) != result.shape:
                    raise ValueError(f"a result of shape {shape} into an array of shape {result.shape}")
                shape = result.shape
            for result in outputs:
                if result.shape != shape:
                    raise ValueError(f"a result of shape {shape} into an array of shape {result.shape}")
                if result.size and any(stride == 0 and extent > 1
                                       for stride, extent in zip(result.strides, shape, strict=True)):
                    raise ValueError("an output whose elements share memory")
            strides = [iteration_space.stretched(x.shape, x.strides, shape) for x in inputs]
            plan = self._planned(key, shape, None, outputs, strides)
        for result in outputs:
            if not result.flags.writeable:
                raise ValueError("output array is read-only")
        if plan.call is None:
            return
        targets = list(outputs)
        for i, result in enumerate(targets):
            others = (*inputs, *outputs[:i])
            if any(_clash(result, x) for x in others):
                targets[i] = np.empty(result.shape, result.dtype)
        if any(a is not b for a, b in zip(targets, outputs, strict=True)):
            fresh = tuple(np.empty(each.shape, each.dtype) for each in outputs)
            self._into(inputs, fresh)
            for result, value in zip(outputs, fresh, strict=True):
                result[...] = value
            return
        plan.call(thread_pool.pool(), plan.body, plan.words, plan.chunks, *map(id, outputs), *map(id, inputs))

    def _planned(self, key: tuple, shape: tuple[int, ...], order: list[int] | None, outputs: Sequence[np.ndarray],
                 strides: list[list[int]]) -> _Plan:
        plan = self._plan(shape, order, outputs, strides)
        with self._lock:
            if len(self._plans) >= PLANS:
                self._plans.clear()
            self._plans[key] = plan
        return plan

    def _plan(self, shape: tuple[int, ...], order: list[int] | None, outputs: Sequence[np.ndarray],
              strides: list[list[int]]) -> _Plan:
        if iteration_space.elements(shape) == 0:
            return _Plan(shape, order, None, 0, 0, ())
        found = self._course(shape, [iteration_space.stretched(x.shape, x.strides, shape) for x in outputs] + strides)
        if self._call is None:
            from ..llvm import kernel_entry

            self._call = kernel_entry.call(len(self._all)).function("call", *kernel_entry.call_type(len(self._all)))
        body = self._body(found.steps, found.rows, found.ending)[1].address
        return _Plan(shape, order, self._call, body, found.chunks, found.words)

    def _course(self, shape: tuple[int, ...], every: list[list[int]]) -> _Course:
        """How operands of these strides, outputs first, are walked over a shape of at least one element."""
        dims = iteration_space.collapse(shape, every, iteration_space.memory_order(shape, every))
        if len(dims.extents) > 1 and dims.extents[0] < self._lanes:
            longest = max(range(len(dims.extents)), key=dims.extents.__getitem__)
            if dims.extents[longest] >= 4 * dims.extents[0]:
                dims = iteration_space.bring_inside(dims, longest)
        steps = self._backwards(iteration_space.steps(dims, self._sizes), dims)
        inner = dims.extents[0] if dims.extents else 1
        if len(dims.extents) <= 1:
            chunks, block = iteration_space.blocks(inner, self._grain)
            known = ending(lengths(inner, block), self._lanes, inner)
            words = [inner, block, *(each[0] if each else 0 for each in dims.strides)]
            return _Course(steps, False, known, chunks, words)
        rows = iteration_space.elements(shape) // inner
        rank = len(dims.extents) - 1
        steps = self._transposed(steps, dims, rank)
        if "s" in steps or "t" in steps:
            block_count, block = -(-inner // NARROW), NARROW
        else:
            block_count, block = iteration_space.blocks(inner, max(self._grain, 1024))
        row_count, row_block = iteration_space.blocks(rows, max(self._lanes, self._grain // min(block, inner)),
                                             self._lanes if "t" in steps else 1)
        if "t" in steps and row_count == 1:
            row_block = -(-rows // self._lanes) * self._lanes
        words = [inner, block, block_count, rows, row_block, rank, *(each[0] for each in dims.strides),
                 *dims.extents[1:], *(stride for each in dims.strides for stride in each[1:])]
        known = ending(lengths(inner, block), self._lanes, rows * inner)
        return _Course(steps, True, known, block_count * row_count, words)

    def _backwards(self, steps: str, dims: iteration_space.Dims) -> str:
        """Which inputs lie together in memory, but the other way round ("n")."""
        return "".join("n" if step == "s" and i >= len(self.outputs) and dims.strides[i][0] == -self._sizes[i] else step
                       for i, step in enumerate(steps))

    def _transposed(self, steps: str, dims: iteration_space.Dims, rank: int) -> str:
        """Which inputs are read as square blocks that are turned ("t"): those whose rows lie crosswise in memory."""
        lanes, rows = self._lanes, dims.extents[1]
        if lanes > 16 or rows < lanes or (rank > 1 and rows % lanes):
            return steps
        return "".join("t" if step == "s" and i >= len(self.outputs) and dims.strides[i][1] == self._sizes[i] else step
                       for i, step in enumerate(steps))

    def _body(self, steps: str, rows: bool, known: Ending,
              past: bool = False) -> tuple[compilation.Library, compilation.Symbol]:
        name = f"{steps} {'rows' if rows else 'run'} {known}{' past' * past}"
        found = self._bodies.get(name)
        if found is None:
            library = self._library(steps, rows, known, past)
            found = self._bodies[name] = library, library.symbol("body")
        return found

    def _library(self, steps: str, rows: bool, known: Ending = ANY, past: bool = False) -> compilation.Library:
        way = f"{steps} {'rows' if rows else 'run'} {known}{' past' * past} {self._lanes} {self._unroll}"
        return compilation.load(f"elementwise {way}\n{self._recipe}", ("body",),
                             lambda: self._generate(steps, rows, known, past), "few")

    def _generate(self, steps: str, rows: bool, known: Ending, past: bool) -> str:
        from . import code as streaming

        return streaming.Writer(self.outputs, self._all, steps, self._lanes, self._unroll, NARROW, known,
                                past).module(rows)


def _alike(inputs: Sequence[np.ndarray]) -> bool:
    """Whether these are contiguous arrays of one shape."""
    shape = inputs[0].shape
    return all(x.flags.c_contiguous and x.shape == shape for x in inputs)


def _clash(result: np.ndarray, other: np.ndarray) -> bool:
    """Whether writing one may change what is still to be read of the other: they overlap, and not as one array."""
    if not np.may_share_memory(result, other):
        return False
    if (result.__array_interface__["data"] == other.__array_interface__["data"] and result.shape == other.shape
            and result.strides == other.strides and result.dtype == other.dtype):
        return False
    try:
        return bool(np.shares_memory(result, other, max_work=10_000))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


_kernels: dict[tuple, Kernel] = {}


def kernel(outputs: Sequence[Node], inputs: Sequence[np.dtype | str | type]) -> Kernel:
    """The kernel that computes `outputs` from arrays of the dtypes `inputs`; always the same one for the same.

    Raises:
        TypeError: an expression asks for an input that is not there, or is of another dtype.
    """
    if not inputs:
        raise ValueError("a kernel that is called with arrays has at least one input")
    return _kernel(outputs, inputs)


def _kernel(outputs: Sequence[Node], inputs: Sequence[np.dtype | str | type]) -> Kernel:
    key = (tuple(outputs), tuple(inputs))
    found = _kernels.get(key)
    if found is None:
        nodes, dtypes = tuple(outputs), tuple(variable(0, dtype).dtype for dtype in inputs)
        made = Kernel(nodes, dtypes)
        found = _kernels.setdefault((nodes, dtypes), made)
        _kernels[key] = found
    return found


def launches(outputs: Sequence[Node], outs: Sequence[Spec], ins: Sequence[Spec]) -> list[Launch]:
    """The work of computing `outputs` for every element: no arrays are needed yet.

    Args:
        outputs: the expressions, whose variables are the positions in `ins`.
        outs: where they are written; all of one shape, which is the shape that is computed.
        ins: the inputs, of shapes that broadcast to it; there may be none. An output may share memory with an input
            only where both lie exactly alike.

    Returns:
        Launches over the pointers of `outs`, then of `ins`; none where there are no elements.

    Raises:
        TypeError: an output's dtype is not its expression's.
        ValueError: shapes that do not fit.

    >>> import numpy as np
    >>> from flambeau import codegen
    >>> from flambeau.runtime import launch
    >>> from flambeau.codegen.scalar.scalar_ir import variable
    >>> x, out = np.arange(3, dtype="f4"), np.zeros(3, "f4")
    >>> if codegen.available():
    ...     work = launches([variable(0, "float32") * 2], [launch.Spec.of(out)], [launch.Spec.of(x)])
    ...     launch.run(work, [out, x])
    """
    found = _kernel(outputs, [each.dtype for each in ins])
    if len(outs) != len(found.outputs):
        raise ValueError(f"{len(found.outputs)} outputs into {len(outs)} arrays")
    shape = outs[0].shape
    every = []
    for each, dtype in zip(outs, found.dtypes, strict=True):
        if each.dtype != dtype:
            raise TypeError(f"an output of {each.dtype} for a result of {dtype}")
        if each.shape != shape:
            raise ValueError(f"outputs of shapes {shape} and {each.shape}")
        every.append(iteration_space.stretched(shape, each.strides, shape))
    for each in ins:
        every.append(iteration_space.spread(each.shape, each.strides, shape))
    if iteration_space.elements(shape) == 0:
        return []
    course = found._course(shape, every)
    past = found._waits and nontemporal_stores.are_faster(iteration_space.touched(shape, every, found._sizes))
    library, body = found._body(course.steps, course.rows, course.ending, past)
    return [Launch(library, body, course.chunks, tuple(course.words))]
