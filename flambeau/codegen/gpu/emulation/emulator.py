"""Execution of kernel IR on the CPU, block by block, with checks.

The blocks run one group after another. Within a group every statement runs for all threads before the next one does,
which is one of the orders that a GPU may choose; so a kernel without races has the GPU's results, up to the order of
atomic additions. `race_detector` looks for races and for accesses out of bounds.

>>> import numpy as np
>>> from flambeau import codegen
>>> from flambeau.codegen.gpu.kernel_ir import KernelBuilder
>>> b = KernelBuilder("square", threads=32)
>>> x, y = b.buffer("float32"), b.buffer("float32")
>>> i = b.block * 32 + b.thread
>>> value = b.load(x, i)
>>> b.store(y, i, value * value)
>>> a, out = np.arange(64, dtype="f4"), np.empty(64, "f4")
>>> if codegen.available():
...     run(b.kernel(), (2, 1, 1), [a, out])
...     print(out[:4])
... else:
...     print(np.float32([0, 1, 4, 9]))
[0. 1. 4. 9.]
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ....dtypes import BFLOAT16, to_bfloat16, widen
from ...scalar.scalar_ir import Node
from .. import fragments
from ..kernel_ir import BLOCK_X, THREAD, WARP, Kernel
from ..launches import VECTOR, DeviceLaunch
from ..scopes import value_in
from ..statements import (
    Atomic,
    Barrier,
    Buffer,
    GetLocal,
    If,
    Load,
    Local,
    Loop,
    Mma,
    SetLocal,
    Shuffle,
    Store,
    While,
)
from . import scalar_evaluator
from .race_detector import ATOMIC, READ, WRITE, AccessLog, OutOfBoundsError, RaceError

#: threads that run at once
GROUP = 1 << 14
#: bytes that fill shared memory and registers that no thread has written: NaN, and an integer far out of bounds
UNDEFINED = 0x7F


class View(NamedTuple):
    """Memory, and the element of it that a buffer's index 0 is."""

    memory: np.ndarray
    origin: int


class Table:
    """The arrays whose addresses a table of an indirect buffer holds."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self.arrays = list(arrays)


def run(kernel: Kernel, grid: tuple[int, int, int], arguments: Sequence[Any], check: bool = True) -> None:
    """Run a kernel on arrays.

    Args:
        kernel: the kernel.
        grid: the number of blocks in three dimensions.
        arguments: for each parameter a contiguous array of the buffer's dtype, a `View` of one, a `Table` for a table
            of addresses, or a number.
        check: whether to look for races.

    Raises:
        RaceError: two threads race, or a barrier is not reached by all threads of a block.
        OutOfBoundsError: an access is out of bounds.
        TypeError: an argument does not fit its parameter.
    """
    if len(arguments) != len(kernel.parameters):
        raise TypeError(f"kernel {kernel.name} takes {len(kernel.parameters)} arguments, not {len(arguments)}")
    for parameter, argument in zip(kernel.parameters, arguments, strict=True):
        if not isinstance(parameter, Buffer) or isinstance(argument, Table):
            continue
        memory = argument.memory if isinstance(argument, View) else argument
        if memory.dtype != parameter.dtype or not memory.flags.c_contiguous:
            raise TypeError(f"{parameter} of kernel {kernel.name} is a contiguous array of {parameter.dtype}, not of "
                            f"{memory.dtype}")
    log = AccessLog(kernel.name, kernel.threads) if check else None
    blocks, at_once = prod(grid), max(1, GROUP // kernel.threads)
    with np.errstate(all="ignore"):
        for first in range(0, blocks, at_once):
            _Group(kernel, grid, arguments, range(first, min(blocks, first + at_once)), log).run()
    if log is not None:
        log.finish()


class _Group:
    """Blocks that run together: every value has one element for each of their threads."""

    def __init__(self, kernel: Kernel, grid: tuple[int, int, int], arguments: Sequence[Any], blocks: range,
                 log: AccessLog | None) -> None:
        self.kernel, self.log, self.blocks = kernel, log, blocks
        self.count = count = len(blocks) * kernel.threads
        block = np.repeat(np.arange(blocks.start, blocks.stop, dtype=np.int32), kernel.threads)
        self.block_in_group = block - np.int32(blocks.start)
        self.threads = np.arange(count, dtype=np.int64) + blocks.start * kernel.threads
        thread = np.tile(np.arange(kernel.threads, dtype=np.int32), len(blocks))
        x, y, _ = grid
        registers = {THREAD: thread, BLOCK_X: block % np.int32(x), BLOCK_X + 1: block // np.int32(x) % np.int32(y),
                     BLOCK_X + 2: block // np.int32(x * y)}
        self.registers = registers
        self.scopes: list[dict[Node, np.ndarray]] = [{}]
        self.mask = np.ones(count, bool)
        self.locals: dict[Local, np.ndarray] = {}
        self.shared = np.full(len(blocks) * kernel.shared, UNDEFINED, np.uint8)
        self.buffers: dict[int, Any] = {}
        for each, argument in zip(kernel.parameters, arguments, strict=True):
            if isinstance(each, Buffer):
                self.buffers[each.position] = argument
            else:
                self.scopes[0][each] = np.array([argument], each.dtype)

    def run(self) -> None:
        """Run the kernel's statements."""
        self._run(self.kernel.body)
        if self.log is not None:
            self.log.barrier()

    def _run(self, body: Sequence[Any]) -> None:
        for statement in body:
            self._EXECUTE[type(statement)](self, statement)

    # ----- expressions -----

    def _value(self, root: Node) -> np.ndarray:
        return value_in(self.scopes, root, self._made)

    def _made(self, node: Node, operands: list[np.ndarray]) -> np.ndarray:
        return self.registers[node.const] if node.op == "input" else scalar_evaluator.evaluate(node, operands)

    def _lanes(self, value: np.ndarray) -> np.ndarray:
        return np.broadcast_to(value, (self.count,))

    # ----- memory -----

    def _active(self, where: Node | None) -> np.ndarray:
        return self.mask if where is None else self.mask & self._lanes(self._value(where))

    def _elements(self, statement: Any, width: int, active: np.ndarray, kind: int
                  ) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Memory, indices and lanes of the accesses: one triple, but of an indirect buffer one for each array."""
        buffer = statement.buffer
        lanes = np.flatnonzero(active)
        index = self._lanes(self._value(statement.at))[lanes].astype(np.int64)
        if width > 1 and (index % width).any():
            raise OutOfBoundsError(f"kernel {self.kernel.name}: {width} elements of {buffer} from an index that is no "
                                   f"multiple of {width}")
        if buffer.space == "shared":
            self._check_bounds(buffer, index, width, buffer.size)
            size = buffer.dtype.itemsize
            flat = self.shared.view(buffer.dtype)
            at = (self.block_in_group[lanes].astype(np.int64) * self.kernel.shared + buffer.position) // size + index
            self._record("shared", at * size, width, buffer, lanes, kind)
            return [(flat, at, lanes)]
        if buffer.space == "constant":
            self._check_bounds(buffer, index, width, buffer.size)
            return [(np.array(buffer.values, buffer.dtype), index, lanes)]
        if buffer.space == "global":
            arrays = [(self.buffers[buffer.position], np.ones(len(index), bool))]
        else:
            slots = self._lanes(self._value(buffer.slot))[lanes]
            table = self.buffers[buffer.table.position]
            self._check_bounds(buffer.table, slots, 1, len(table.arrays))
            arrays = [(table.arrays[slot], slots == slot) for slot in np.unique(slots)]
        found = []
        for array, chosen in arrays:
            memory, origin = array if isinstance(array, View) else (array, 0)
            flat, some = memory.reshape(-1), index[chosen] + origin
            if width > 1 and origin % width:
                raise OutOfBoundsError(f"kernel {self.kernel.name}: {width} elements of {buffer} at once, from an "
                                       f"address that is no multiple of {width * memory.itemsize}")
            self._check_bounds(buffer, some, width, flat.size)
            first = memory.__array_interface__["data"][0]
            self._record("global", first + some * memory.itemsize, width, buffer, lanes[chosen], kind, first)
            found.append((flat, some, lanes[chosen]))
        return found

    def _record(self, memory: str, addresses: np.ndarray, width: int, buffer: Buffer, lanes: np.ndarray, kind: int,
                first: int | None = None) -> None:
        if self.log is not None:
            self.log.describe(memory, buffer.position if first is None else first, repr(buffer), buffer.dtype.itemsize)
            for k in range(width):
                self.log.record(memory, addresses + k * buffer.dtype.itemsize, self.threads[lanes], kind)

    def _check_bounds(self, buffer: Buffer, index: np.ndarray, width: int, size: int) -> None:
        wrong = (index < 0) | (index + width > size)
        if wrong.any():
            raise OutOfBoundsError(f"kernel {self.kernel.name}: element {index[wrong][0]} of {buffer}, which has "
                                   f"{size}")

    def _load(self, statement: Load) -> None:
        active, width, dtype = self._active(statement.where), len(statement.results), statement.buffer.dtype
        results = [np.zeros(self.count, scalar_evaluator.held(dtype)) for _ in range(width)]
        for memory, index, lanes in self._elements(statement, width, active, READ):
            for k, result in enumerate(results):
                result[lanes] = _read(memory, index + k, dtype)
        self.scopes[-1].update(zip(statement.results, results, strict=True))

    def _store(self, statement: Store) -> None:
        active, width = self._active(statement.where), len(statement.values)
        values = [self._lanes(self._value(each)) for each in statement.values]
        for memory, index, lanes in self._elements(statement, width, active, WRITE):
            for k, value in enumerate(values):
                _write(memory, index + k, statement.buffer.dtype, value[lanes])

    def _atomic(self, statement: Atomic) -> None:
        value = self._lanes(self._value(statement.value))
        combine: Any = {"add": np.add, "min": np.minimum, "max": np.maximum}[statement.op]
        for memory, index, lanes in self._elements(statement, 1, self._active(statement.where), ATOMIC):
            combine.at(memory, index, value[lanes])

    # ----- threads -----

    def _barrier(self, statement: Barrier) -> None:
        by_block = self.mask.reshape(len(self.blocks), -1)
        if (by_block.any(1) != by_block.all(1)).any():
            raise RaceError(f"kernel {self.kernel.name}: a barrier that some threads of a block do not reach; move it "
                            "out of the `if` or the loop whose condition differs among them")
        if self.log is not None:
            self.log.barrier()

    def _require_whole_warps(self, what: str) -> None:
        by_warp = self.mask.reshape(-1, WARP)
        if (by_warp.any(1) != by_warp.all(1)).any():
            raise RaceError(f"kernel {self.kernel.name}: {what} that some threads of a warp do not reach")

    def _shuffle(self, statement: Shuffle) -> None:
        self._require_whole_warps("a shuffle")
        value = self._lanes(self._value(statement.value))
        self.scopes[-1][statement.result] = value[np.arange(self.count) ^ statement.lanes]

    def _mma(self, statement: Mma) -> None:
        self._require_whole_warps("a matrix multiplication")
        layout = fragments.SHAPES[statement.shape]
        a, b, c = (self._gathered(nodes, places, shape) for nodes, places, shape in (
            (statement.a, layout.a, (layout.m, layout.k)), (statement.b, layout.b, (layout.k, layout.n)),
            (statement.c, layout.c, (layout.m, layout.n))))
        if statement.shape.endswith("tf32"):
            a, b = (_round_to_tf32(each) for each in (a, b))
        product = (np.matmul(a.astype(np.float64), b.astype(np.float64)) + c).astype(np.float32)
        results = [np.empty((self.count // WARP, WARP), np.float32) for _ in statement.results]
        for lane in range(WARP):
            for result, (row, column) in zip(results, layout.c(lane), strict=True):
                result[:, lane] = product[:, row, column]
        self.scopes[-1].update((node, each.reshape(-1)) for node, each in zip(statement.results, results, strict=True))

    def _gathered(self, nodes: Sequence[Node], places: Any, shape: tuple[int, int]) -> np.ndarray:
        """The matrix that the threads of each warp hold."""
        matrix = np.zeros((self.count // WARP, *shape), np.float32)
        values = [self._lanes(self._value(each)).reshape(-1, WARP) for each in nodes]
        for lane in range(WARP):
            for value, (row, column) in zip(values, places(lane), strict=True):
                matrix[:, row, column] = value[:, lane]
        return matrix

    # ----- state and control flow -----

    def _set(self, statement: SetLocal) -> None:
        value, local = self._lanes(self._value(statement.value)), statement.local
        if local not in self.locals:
            raw = np.full(self.count * value.itemsize, UNDEFINED, np.uint8)
            self.locals[local] = raw.view(value.dtype) if value.dtype.kind != "b" else raw.astype(bool)
        self.locals[local] = np.where(self.mask, value, self.locals[local])

    def _get(self, statement: GetLocal) -> None:
        self.scopes[-1][statement.result] = self.locals[statement.local]

    def _loop(self, statement: Loop) -> None:
        start, stop, step = (self._lanes(self._value(each)) for each in statement.expressions())
        index, before = start.copy(), self.mask
        while True:
            self.mask = before & (index < stop)
            if not self.mask.any():
                break
            self.scopes.append({statement.counter: index})
            self._run(statement.body)
            self.scopes.pop()
            index = index + step
        self.mask = before

    def _while(self, statement: While) -> None:
        before = self.mask
        while True:
            self.mask = self.mask & self.locals[statement.going]
            if not self.mask.any():
                break
            self.scopes.append({})
            self._run(statement.body)
            self.scopes.pop()
        self.mask = before

    def _if(self, statement: If) -> None:
        before = self.mask
        self.mask = before & self._lanes(self._value(statement.condition))
        if self.mask.any():
            self.scopes.append({})
            self._run(statement.body)
            self.scopes.pop()
        self.mask = before

    _EXECUTE: ClassVar[dict[type, Any]] = {
        Load: _load, Store: _store, Atomic: _atomic, Barrier: _barrier, Shuffle: _shuffle, Mma: _mma, SetLocal: _set,
        GetLocal: _get, Loop: _loop, While: _while, If: _if}


def run_launches(launches: Sequence[DeviceLaunch], operands: Sequence[np.ndarray], check: bool = True) -> None:
    """Run launches on arrays, outputs first, of the layouts for which the launches were made.

    >>> import numpy as np
    >>> from flambeau import codegen
    >>> from flambeau.codegen.gpu import elementwise
    >>> from flambeau.codegen.scalar.scalar_ir import variable
    >>> from flambeau.runtime.launch import Spec
    >>> x, y = np.float32([[1, 2], [3, 4]]), np.empty((2, 2), "f4")
    >>> work = elementwise.launches([variable(0, "float32") * 2], [Spec.of(y)], [Spec.of(x.T)])
    >>> if codegen.available():
    ...     run_launches(work, [y, x.T])
    >>> y.tolist() if codegen.available() else [[2.0, 6.0], [4.0, 8.0]]
    [[2.0, 6.0], [4.0, 8.0]]
    """
    scratch = np.full(max((each.scratch for each in launches), default=0), UNDEFINED, np.uint8)
    memories = [memory_of(each) for each in operands]
    for each in launches:
        if each.unaligned is not None and any(view.memory.itemsize * view.origin % VECTOR for view in memories):
            each = each.unaligned
        arguments: list[Any] = []
        buffers = [x for x in each.kernel.parameters if isinstance(x, Buffer)]
        for buffer, argument in zip(buffers, each.arguments, strict=True):
            if argument.operand < len(operands):
                memory, origin = memories[argument.operand]
                if memory.itemsize == buffer.dtype.itemsize and buffer.dtype.kind == "u":
                    memory = memory.view(buffer.dtype)  # the bits of elements
                arguments.append(View(memory, origin + argument.offset // memory.itemsize))
            else:
                size = None if argument.size is None else argument.size * buffer.dtype.itemsize
                arguments.append(scratch[argument.offset:][:size].view(buffer.dtype))
        run(each.kernel, each.grid, [*arguments, *each.scalars], check)


def memory_of(array: np.ndarray) -> View:
    """The memory that a strided array spans, and the place of its first element."""
    low = high = 0
    for extent, stride in zip(array.shape, array.strides, strict=True):
        reach = (extent - 1) * stride // array.itemsize if array.size else 0
        low, high = low + min(reach, 0), high + max(reach, 0)
    if array.flags.c_contiguous:
        return View(array.reshape(-1), 0)
    start = np.lib.stride_tricks.as_strided(array[tuple([slice(-1, None) if stride < 0 else slice(0, 1)
                                                         for stride in array.strides])], (high - low + 1,),
                                            (array.itemsize,))
    return View(start, -low)


def _read(memory: np.ndarray, index: np.ndarray, dtype: np.dtype) -> np.ndarray:
    found = memory[index]
    return widen(found) if dtype == BFLOAT16 else found.astype(scalar_evaluator.held(dtype), copy=False)


def _write(memory: np.ndarray, index: np.ndarray, dtype: np.dtype, value: np.ndarray) -> None:
    memory[index] = to_bfloat16(np.ascontiguousarray(value)) if dtype == BFLOAT16 else value


def _round_to_tf32(x: np.ndarray) -> np.ndarray:
    """float32 with the 10 bits of mantissa that the tensor cores read."""
    return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
