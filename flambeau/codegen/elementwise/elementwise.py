"""Elementwise kernels: fused expressions over arrays that broadcast together, in one pass over memory.

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
from ...runtime.symbolic_integers import lesser, typical
from .. import iteration_space
from ..llvm.tails import ANY_LENGTH, TailInfo, block_lengths, tail_info
from ..scalar.scalar_ir import Node, canonical_text, cost, topological_order, variable

#: plans that a kernel caches, one per layout of its arrays
PLANS = 1024
#: columns of a tile if an operand is strided: the cache lines that one row touches serve the next rows
TILE_COLUMNS = 64


class _LoopNest(NamedTuple):
    """The loops of a kernel for one layout of its operands, and its launch.

    Attributes:
        steps: the operands' access patterns along the inner dimension (`loop_nests.Operand`).
        rows: whether there are outer dimensions.
        tail: what is known about the lengths of runs.
        chunks: the number of chunks.
        words: the plan (`code`).
    """

    steps: str
    rows: bool
    tail: TailInfo
    chunks: int
    words: list[int]


class _Plan:
    """The launch of a kernel for arrays of certain shapes and strides.

    Attributes:
        shape: of the outputs.
        order: of the outputs' dimensions in memory, slowest first; None: row-major.
        call: the generated function (`kernel_entry.call`); None if there are no elements.
        body: the address of the kernel's body.
        chunks: the number of chunks.
        words: the plan, as a ctypes array.
    """

    __slots__ = ("body", "call", "chunks", "order", "shape", "words")

    def __init__(self, shape: tuple[int, ...], order: list[int] | None, call: Any, body: int, chunks: int,
                 words: Sequence[int]) -> None:
        self.shape = shape
        self.order = order
        self.call = call
        self.body = body
        self.chunks = chunks
        self.words = (ctypes.c_int64 * len(words))(*words)


class Kernel:
    """A compiled elementwise kernel; `kernel` makes it.

    A call takes arrays of the dtypes that the kernel was compiled for, of shapes that broadcast together, and Python
    scalars in place of 0-d arrays. It returns the output, or a tuple of several. `out` is an array or several of the
    full shape to write to; they may be inputs too.

    Attributes:
        outputs: the expressions.
        inputs: the inputs' dtypes.
        dtypes: the outputs' dtypes.
        ir: the LLVM IR for contiguous arrays of one shape, as generated.
        asm: the assembly for these.
    """

    def __init__(self, outputs: tuple[Node, ...], inputs: tuple[np.dtype, ...]) -> None:
        if not outputs:
            raise ValueError("a kernel has at least one output")
        nodes = topological_order(outputs)
        for node in nodes:
            if node.op == "input" and (node.const >= len(inputs) or inputs[node.const] != node.dtype):
                raise TypeError(f"{node} of {node.dtype} is not among inputs of {', '.join(map(str, inputs))}")
        self.outputs, self.inputs = outputs, inputs
        self.dtypes = tuple(node.dtype for node in outputs)
        self._recipe = canonical_text(outputs) + "\nin " + " ".join(map(str, inputs))
        self._all = self.dtypes + inputs
        self._sizes = [dtype.itemsize for dtype in self._all]
        widest = max(node.dtype.itemsize for node in nodes)
        self._lanes = max(4, target.host().vector_bits // 8 // widest)
        work = cost(outputs)
        self._unroll = 4 if work <= 4 else 2 if work <= 24 else 1
        self._is_memory_bound = work <= nontemporal_stores.MAX_WORK
        # elements that one thread computes in about 10 us, at 30 bytes and 20 additions per ns
        self._grain = max(512, int(10_000 / (sum(self._sizes) / 30 + work / 20)))
        self._flat_info: Any = None
        self._plans: dict[tuple, _Plan] = {}
        self._bodies: dict[str, tuple[compilation.Library, compilation.Symbol]] = {}
        self._flat: Callable[..., int] | None = None
        self._call: Callable[..., None] | None = None
        self._lock = threading.Lock()
        self._input_count = len(inputs)
        self._single_dtype = self.dtypes[0] if len(outputs) == 1 else None

    def __repr__(self) -> str:
        return f"<kernel {', '.join(map(repr, self.outputs))}>"

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        if len(inputs) != self._input_count:
            raise TypeError(f"{self!r} takes {self._input_count} arrays, not {len(inputs)}")
        for x in inputs:
            if type(x) is not np.ndarray:
                inputs = tuple(map(self._array, inputs, self.inputs))
                break
        flat = self._flat or self._load_flat()
        if out is None:
            first = inputs[0]
            # a large output is allocated only for the entry point that will accept it: freeing and allocating it again
            # costs page faults
            if first.size < 4096 or _is_flat(inputs):
                if self._single_dtype is not None:
                    result = np.empty(first.shape, self._single_dtype)
                    if not flat(thread_pool.pool(), self._flat_info, id(result), *map(id, inputs)):
                        return result
                else:
                    results = tuple([np.empty(first.shape, dtype) for dtype in self.dtypes])
                    if not flat(thread_pool.pool(), self._flat_info, *map(id, results), *map(id, inputs)):
                        return results
            results = self._allocate_and_run(inputs)
        else:
            results = (out,) if isinstance(out, np.ndarray) else tuple(out)
            if len(results) != len(self.outputs) or any(type(each) is not np.ndarray for each in results):
                raise TypeError(f"out takes {len(self.outputs)} arrays")
            if flat(thread_pool.pool(), self._flat_info, *map(id, results), *map(id, inputs)):
                self._run_into(inputs, results)
        return results[0] if self._single_dtype is not None else results

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
        raise TypeError(f"a kernel takes arrays and scalars, not {type(x).__name__}")

    def _load_flat(self) -> Callable[..., int]:
        from ..llvm import kernel_entry

        count = len(self._all)
        _, body = self._body("c" * count, False, ANY_LENGTH)
        self._flat_info = (ctypes.c_int64 * (2 + count))(self._grain, body.address, *map(id, self._all))
        self._flat = kernel_entry.flat(len(self.outputs), self._sizes).function("flat", *kernel_entry.flat_type(count))
        return self._flat

    def _allocate_and_run(self, inputs: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """Compute into new arrays, whose dimensions have the memory order of the inputs."""
        key = tuple([each for x in inputs for each in (x.shape, x.strides, x.dtype)])
        plan = self._plans.get(key)
        if plan is None:
            self._check(inputs)
            shape = iteration_space.broadcast([x.shape for x in inputs])
            strides = [iteration_space.broadcast_strides(x.shape, x.strides, shape) for x in inputs]
            order = iteration_space.memory_order(shape, strides)
            permuted = None if order == list(range(len(shape))) else order
            outputs = [self._empty(shape, permuted, dtype) for dtype in self.dtypes]
            plan = self._cache_plan(key, shape, permuted, outputs, strides)
        results = tuple([self._empty(plan.shape, plan.order, dtype) for dtype in self.dtypes])
        if plan.call is not None:
            plan.call(thread_pool.pool(), plan.body, plan.words, plan.chunks, *map(id, results), *map(id, inputs))
        return results

    @staticmethod
    def _empty(shape: tuple[int, ...], order: list[int] | None, dtype: np.dtype) -> np.ndarray:
        if order is None:
            return np.empty(shape, dtype)
        axes = sorted(range(len(order)), key=order.__getitem__)
        return np.empty([shape[dim] for dim in order], dtype).transpose(axes)

    def _check(self, inputs: Sequence[np.ndarray]) -> None:
        for x, dtype in zip(inputs, self.inputs, strict=True):
            if x.dtype != dtype:
                raise TypeError(f"{self!r} was made for {', '.join(map(str, self.inputs))}, not {x.dtype}")

    def _run_into(self, inputs: tuple[np.ndarray, ...], outputs: tuple[np.ndarray, ...]) -> None:
        """Compute into existing arrays; through temporaries where an output overlaps an input or another output."""
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
            strides = [iteration_space.broadcast_strides(x.shape, x.strides, shape) for x in inputs]
            plan = self._cache_plan(key, shape, None, outputs, strides)
        for result in outputs:
            if not result.flags.writeable:
                raise ValueError("output array is read-only")
        if plan.call is None:
            return
        targets = list(outputs)
        for i, result in enumerate(targets):
            others = (*inputs, *outputs[:i])
            if any(_overlaps(result, x) for x in others):
                targets[i] = np.empty(result.shape, result.dtype)
        if any(a is not b for a, b in zip(targets, outputs, strict=True)):
            temporaries = tuple(np.empty(each.shape, each.dtype) for each in outputs)
            self._run_into(inputs, temporaries)
            for result, value in zip(outputs, temporaries, strict=True):
                result[...] = value
            return
        plan.call(thread_pool.pool(), plan.body, plan.words, plan.chunks, *map(id, outputs), *map(id, inputs))

    def _cache_plan(self, key: tuple, shape: tuple[int, ...], order: list[int] | None, outputs: Sequence[np.ndarray],
                    strides: list[list[int]]) -> _Plan:
        plan = self._make_plan(shape, order, outputs, strides)
        with self._lock:
            if len(self._plans) >= PLANS:
                self._plans.clear()
            self._plans[key] = plan
        return plan

    def _make_plan(self, shape: tuple[int, ...], order: list[int] | None, outputs: Sequence[np.ndarray],
                   strides: list[list[int]]) -> _Plan:
        if iteration_space.numel(shape) == 0:
            return _Plan(shape, order, None, 0, 0, ())
        written = [iteration_space.broadcast_strides(x.shape, x.strides, shape) for x in outputs]
        nest = self._loop_nest(shape, written + strides)
        if self._call is None:
            from ..llvm import kernel_entry

            self._call = kernel_entry.call(len(self._all)).function("call", *kernel_entry.call_type(len(self._all)))
        body = self._body(nest.steps, nest.rows, nest.tail)[1].address
        return _Plan(shape, order, self._call, body, nest.chunks, nest.words)

    def _loop_nest(self, shape: tuple[int, ...], strides: list[list[int]], by_rows: bool = False) -> _LoopNest:
        """The loops over a shape of at least one element, for operands of these strides, outputs first.

        Args:
            by_rows: whether the loops are the same for any first extent.
        """
        dims = iteration_space.collapse(shape, strides, iteration_space.memory_order(shape, strides))
        if not by_rows and len(dims.extents) > 1 and dims.extents[0] < self._lanes:
            longest = max(range(len(dims.extents)), key=dims.extents.__getitem__)
            if dims.extents[longest] >= 4 * dims.extents[0]:
                dims = iteration_space.move_innermost(dims, longest)
        steps = self._mark_reversed(iteration_space.access_patterns(dims, self._sizes), dims)
        inner = dims.extents[0] if dims.extents else 1
        if len(dims.extents) <= 1:
            chunks, block = iteration_space.blocks(inner, self._grain)
            tail = tail_info(block_lengths(inner, block), self._lanes, inner)
            words = [inner, block, *(each[0] if each else 0 for each in dims.strides)]
            return _LoopNest(steps, False, tail, chunks, words)
        rows = iteration_space.numel(shape) // inner
        rank = len(dims.extents) - 1
        if not by_rows:
            steps = self._mark_transposed(steps, dims, rank)
        if "s" in steps or "t" in steps:
            block_count, block = -(-inner // TILE_COLUMNS), TILE_COLUMNS
        else:
            block_count, block = iteration_space.blocks(inner, max(self._grain, 1024))
        rows_of_grain = max(self._lanes, self._grain // typical(lesser(block, inner)))
        row_count, row_block = iteration_space.blocks(rows, rows_of_grain, self._lanes if "t" in steps else 1)
        if "t" in steps and row_count == 1:
            row_block = -(-rows // self._lanes) * self._lanes
        words = [inner, block, block_count, rows, row_block, rank, *(each[0] for each in dims.strides),
                 *dims.extents[1:], *(stride for each in dims.strides for stride in each[1:])]
        tail = tail_info(block_lengths(inner, block), self._lanes, rows * inner)
        return _LoopNest(steps, True, tail, block_count * row_count, words)

    def _mark_reversed(self, steps: str, dims: iteration_space.Dims) -> str:
        """The steps, with "n" for inputs that are contiguous in reverse order."""
        return "".join("n" if step == "s" and i >= len(self.outputs) and dims.strides[i][0] == -self._sizes[i] else step
                       for i, step in enumerate(steps))

    def _mark_transposed(self, steps: str, dims: iteration_space.Dims, rank: int) -> str:
        """The steps, with "t" for inputs that are contiguous along the next dimension: they are transposed by tiles."""
        lanes, rows = self._lanes, dims.extents[1]
        if lanes > 16 or rows < lanes or (rank > 1 and rows % lanes):
            return steps
        return "".join("t" if step == "s" and i >= len(self.outputs) and dims.strides[i][1] == self._sizes[i] else step
                       for i, step in enumerate(steps))

    def _body(self, steps: str, rows: bool, tail: TailInfo,
              nontemporal: bool = False) -> tuple[compilation.Library, compilation.Symbol]:
        name = f"{steps} {'rows' if rows else 'flat'} {tail}{' nontemporal' * nontemporal}"
        body = self._bodies.get(name)
        if body is None:
            library = self._library(steps, rows, tail, nontemporal)
            body = self._bodies[name] = library, library.symbol("body")
        return body

    def _library(self, steps: str, rows: bool, tail: TailInfo = ANY_LENGTH,
                 nontemporal: bool = False) -> compilation.Library:
        loops = f"{steps} {'rows' if rows else 'flat'} {tail}{' nontemporal' * nontemporal}"
        return compilation.load(f"elementwise {loops} {self._lanes} {self._unroll}\n{self._recipe}", ("body",),
                                lambda: self._generate(steps, rows, tail, nontemporal), "few")

    def _generate(self, steps: str, rows: bool, tail: TailInfo, nontemporal: bool) -> str:
        from .code import CodeGenerator

        return CodeGenerator(self.outputs, self._all, steps, self._lanes, self._unroll, TILE_COLUMNS, tail,
                             nontemporal).module(rows)


def _is_flat(inputs: Sequence[np.ndarray]) -> bool:
    """Whether these are contiguous arrays of one shape."""
    shape = inputs[0].shape
    return all(x.flags.c_contiguous and x.shape == shape for x in inputs)


def _overlaps(result: np.ndarray, other: np.ndarray) -> bool:
    """Whether writing `result` may change elements of `other` that are read later: they overlap but are not equal."""
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
    """The kernel that computes `outputs` from arrays of the dtypes `inputs`; cached.

    Raises:
        TypeError: an expression has a variable that is not among the inputs, or has another dtype.
    """
    if not inputs:
        raise ValueError("a kernel has at least one input")
    return _kernel(outputs, inputs)


def _kernel(outputs: Sequence[Node], inputs: Sequence[np.dtype | str | type]) -> Kernel:
    key = (tuple(outputs), tuple(inputs))
    cached = _kernels.get(key)
    if cached is None:
        nodes, dtypes = tuple(outputs), tuple(variable(0, dtype).dtype for dtype in inputs)
        new = Kernel(nodes, dtypes)
        cached = _kernels.setdefault((nodes, dtypes), new)
        _kernels[key] = cached
    return cached


def launches(outputs: Sequence[Node], outs: Sequence[Spec], ins: Sequence[Spec], by_rows: bool = False) -> list[Launch]:
    """The launches that compute `outputs` for every element.

    Args:
        outputs: the expressions; their variables are indices into `ins`.
        outs: the layouts of the outputs, all of one shape.
        ins: the layouts of the inputs, of shapes that broadcast to it; there may be none. An output may share memory
            with an input only if both have the same layout.
        by_rows: whether the loops are the same for any first extent, if that is not the fastest way for some.

    Returns:
        Launches over the pointers of `outs`, then of `ins`; none if there are no elements.

    Raises:
        TypeError: an output's dtype differs from its expression's.
        ValueError: the shapes do not match.

    >>> import numpy as np
    >>> from flambeau import codegen
    >>> from flambeau.runtime import launch
    >>> from flambeau.codegen.scalar.scalar_ir import variable
    >>> x, out = np.arange(3, dtype="f4"), np.zeros(3, "f4")
    >>> if codegen.available():
    ...     work = launches([variable(0, "float32") * 2], [launch.Spec.of(out)], [launch.Spec.of(x)])
    ...     launch.run(work, [out, x])
    """
    compiled = _kernel(outputs, [each.dtype for each in ins])
    if len(outs) != len(compiled.outputs):
        raise ValueError(f"{len(compiled.outputs)} outputs into {len(outs)} arrays")
    shape = outs[0].shape
    strides = []
    for each, dtype in zip(outs, compiled.dtypes, strict=True):
        if each.dtype != dtype:
            raise TypeError(f"an output of {each.dtype} for a result of {dtype}")
        if each.shape != shape:
            raise ValueError(f"outputs of shapes {shape} and {each.shape}")
        strides.append(iteration_space.broadcast_strides(shape, each.strides, shape))
    for each in ins:
        strides.append(iteration_space.checked_broadcast_strides(each.shape, each.strides, shape))
    if iteration_space.numel(shape) == 0:
        return []
    nest = compiled._loop_nest(shape, strides, by_rows)
    nontemporal = compiled._is_memory_bound and nontemporal_stores.are_faster(
        iteration_space.bytes_accessed(shape, strides, compiled._sizes))
    library, body = compiled._body(nest.steps, nest.rows, nest.tail, nontemporal)
    return [Launch(library, body, nest.chunks, tuple(nest.words))]
