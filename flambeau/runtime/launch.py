"""Kernel launches, and the generated loop that runs lists of them in one call.

A kernel is a function `body(pointers, plan, chunk)` (`codegen.llvm.kernel_entry.BODY`). A `Launch` names the body, the
number of chunks, and the plan. A `Program` holds a list of launches over a table of base addresses and runs them all
outside the interpreter: `run` walks a table of steps, computes each step's pointers (a base address and an offset) and
hands its chunks to the thread pool.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from . import compilation, entry_points, numpy_abi, thread_pool

#: the most pointers of a step
POINTERS = 192
#: words of a step: body, chunks, plan, then, number of pointers, address of their (base, offset) pairs
STEP_WORDS = 6
#: the index of a record's first base address, after: the pool, the steps, their number, the numbers of array objects
#: and of bases
FIRST = 5
#: alignment of scratch memory in bytes
ALIGNMENT = 64


class Spec(NamedTuple):
    """The layout of an array: shape, strides in bytes, and dtype.

    >>> import numpy as np
    >>> Spec.of(np.zeros((2, 3), np.float32)).strides
    (12, 4)
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype

    @classmethod
    def of(cls, array: np.ndarray) -> Spec:
        """The layout of an array."""
        return cls(array.shape, array.strides, array.dtype)

    @classmethod
    def dense(cls, shape: Sequence[int], dtype: np.dtype) -> Spec:
        """The layout of a contiguous array in row-major order."""
        strides, stride = [], dtype.itemsize
        for extent in reversed(shape):
            strides.append(stride)
            stride *= extent
        return cls(tuple(shape), tuple(reversed(strides)), dtype)

    @property
    def size(self) -> int:
        """The number of elements."""
        n = 1
        for extent in self.shape:
            n *= extent
        return n


class Preparation(NamedTuple):
    """What a launch does that only rearranges one operand in scratch memory: where that is constant, once is enough.

    Attributes:
        source: the pointer index of the operand; -1: what earlier launches of the kernel have prepared.
        begin, end: the bytes of scratch memory that are written.
    """

    source: int
    begin: int
    end: int


class Launch(NamedTuple):
    """A kernel launch: a body, the number of chunks, and the plan.

    Attributes:
        library: keeps the code alive.
        body: the address of `body(pointers, plan, chunk)`; chunks run in any order, on any thread. Like `then` and the
            plan's words it may be a symbol of a library whose compilation has not finished.
        chunks: the number of chunks; plus `thread_pool.CALLER_ONLY` where the calling thread runs all of them.
        words: the plan's 64-bit fields.
        then: the address of a body that is called once, after all chunks; 0 for none.
        scratch: bytes of scratch memory, whose address follows those of the operands.
        preparation: what the launch prepares, if it does nothing else.
        prepared: the fields of the plan that are the pointer index of prepared memory, that of scratch memory.
    """

    library: compilation.Library
    body: compilation.Word
    chunks: int
    words: tuple[compilation.Word, ...]
    then: compilation.Word = 0
    scratch: int = 0
    preparation: Preparation | None = None
    prepared: tuple[int, ...] = ()

    @property
    def shared(self) -> bool:
        """Whether several threads may run the chunks."""
        return 1 < self.chunks < thread_pool.CALLER_ONLY


_IR = """
define i64 @run(ptr %record) {{
entry:
  %pool = load ptr, ptr %record
  %steps.at = getelementptr i64, ptr %record, i64 1
  %steps = load ptr, ptr %steps.at
  %count.at = getelementptr i64, ptr %record, i64 2
  %count = load i64, ptr %count.at
  %objects.at = getelementptr i64, ptr %record, i64 3
  %objects = load i64, ptr %objects.at
  %total.at = getelementptr i64, ptr %record, i64 4
  %total = load i64, ptr %total.at
  %given = getelementptr i64, ptr %record, i64 {first}
  %pointers = alloca [{most} x ptr], align 16
  %bases = alloca ptr, i64 %total, align 16
  br label %resolve
resolve:
  %r = phi i64 [ 0, %entry ], [ %r.next, %resolved ]
  %unresolved = icmp slt i64 %r, %total
  br i1 %unresolved, label %look.up, label %start
look.up:
  %given.at = getelementptr ptr, ptr %given, i64 %r
  %given.one = load ptr, ptr %given.at
  %is.object = icmp slt i64 %r, %objects
  br i1 %is.object, label %object, label %resolved
object:
  %data.at = getelementptr i8, ptr %given.one, i64 {data}
  %data = load ptr, ptr %data.at
  br label %resolved
resolved:
  %address.one = phi ptr [ %given.one, %look.up ], [ %data, %object ]
  %mine = getelementptr ptr, ptr %bases, i64 %r
  store ptr %address.one, ptr %mine
  %r.next = add i64 %r, 1
  br label %resolve
start:
  %run.at = getelementptr i8, ptr %pool, i64 {run}
  %share = load ptr, ptr %run.at
  br label %step
step:
  %i = phi i64 [ 0, %start ], [ %i.next, %done ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %begin, label %end
begin:
  %offset = mul i64 %i, {width}
  %at0 = getelementptr i64, ptr %steps, i64 %offset
  %at1 = getelementptr i64, ptr %at0, i64 1
  %at2 = getelementptr i64, ptr %at0, i64 2
  %at3 = getelementptr i64, ptr %at0, i64 3
  %at4 = getelementptr i64, ptr %at0, i64 4
  %at5 = getelementptr i64, ptr %at0, i64 5
  %body = load ptr, ptr %at0
  %chunks = load i64, ptr %at1
  %plan = load ptr, ptr %at2
  %then = load ptr, ptr %at3
  %n = load i64, ptr %at4
  %pairs = load ptr, ptr %at5
  br label %fill
fill:
  %k = phi i64 [ 0, %begin ], [ %k.next, %fill.one ]
  %filling = icmp slt i64 %k, %n
  br i1 %filling, label %fill.one, label %go
fill.one:
  %twice = shl i64 %k, 1
  %pair = getelementptr i64, ptr %pairs, i64 %twice
  %pair.offset = getelementptr i64, ptr %pair, i64 1
  %base.index = load i64, ptr %pair
  %base.offset = load i64, ptr %pair.offset
  %base.at = getelementptr ptr, ptr %bases, i64 %base.index
  %base = load ptr, ptr %base.at
  %address = getelementptr i8, ptr %base, i64 %base.offset
  %slot = getelementptr ptr, ptr %pointers, i64 %k
  store ptr %address, ptr %slot
  %k.next = add i64 %k, 1
  br label %fill
go:
  %condition = icmp eq ptr %body, null
  br i1 %condition, label %check, label %compute
check:
  %bool.at = load ptr, ptr %pointers
  %bool = load i8, ptr %bool.at
  %outcome = trunc i64 %chunks to i8
  %holds = icmp eq i8 %bool, %outcome
  br i1 %holds, label %done, label %stop
stop:
  %failed = add i64 %i, 1
  ret i64 %failed
compute:
  %several = icmp sgt i64 %chunks, 1
  br i1 %several, label %many, label %one
many:
  call void %share(ptr %pool, ptr %body, ptr %pointers, ptr %plan, i64 %chunks)
  br label %after
one:
  %any = icmp eq i64 %chunks, 1
  br i1 %any, label %only, label %after
only:
  call void %body(ptr %pointers, ptr %plan, i64 0)
  br label %after
after:
  %last = icmp ne ptr %then, null
  br i1 %last, label %finish, label %done
finish:
  call void %then(ptr %pointers, ptr %plan, i64 0)
  br label %done
done:
  %i.next = add i64 %i, 1
  br label %step
end:
  ret i64 0
}}
"""


def _generate() -> str:
    return _IR.format(most=POINTERS, width=STEP_WORDS, run=thread_pool.RUN_OFFSET, data=numpy_abi.DATA, first=FIRST)


def library() -> compilation.Library:
    """The generated loop, `run(record)`: 0, or the number, from 1 on, of the step whose condition does not hold."""
    return compilation.load(f"launch {POINTERS} {STEP_WORDS} {FIRST}", ("run",), _generate, "few")


def plan_array(words: Sequence[compilation.Word]) -> ctypes.Array[ctypes.c_int64]:
    """A plan as an array of int64, its symbols resolved."""
    return (ctypes.c_int64 * max(1, len(words)))(*[x if x.__class__ is int else resolve(x) for x in words])


def addressed_plan(words: Any) -> tuple[Any, int]:
    """What holds a plan's words, and their address.

    Args:
        words: words, or an array of int64 (`backends.compiled.plan_families`).
    """
    if words.__class__ is np.ndarray:
        return words, words.ctypes.data
    array = plan_array(words)
    return array, ctypes.addressof(array)


def resolve(word: compilation.Word) -> int:
    """A symbol's address, once it is compiled; any other word itself."""
    return word.address if isinstance(word, compilation.Symbol) else word


#: fields of a block: the address of `run`, the size of the record's template in words, the index of the arena's address
#: in it, whether to release the GIL; then those of `entry_points`; then the template
_SIZE, _ARENA, _LONG = 1, 2, 3
_ADDRESSES = 4
_TEMPLATE = _ADDRESSES + entry_points.FIELD_COUNT

_START = """
define ptr @start(ptr %self, ptr %arguments, i64 %given) {{
entry:
  %block.at = getelementptr i8, ptr %self, i64 {data}
  %block = load ptr, ptr %block.at
  %size.at = getelementptr i64, ptr %block, i64 {size}
  %size = load i64, ptr %size.at
  %record = alloca i64, i64 %size, align 16
  %template = getelementptr i64, ptr %block, i64 {template}
  %bytes = shl i64 %size, 3
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %record, ptr align 8 %template, i64 %bytes, i1 false)
  %number.at = getelementptr i64, ptr %block, i64 {address_of}
  %number = load ptr, ptr %number.at
  %pool.object = load ptr, ptr %arguments
  %pool = call ptr %number(ptr %pool.object)
  store ptr %pool, ptr %record
  %arena.object.at = getelementptr ptr, ptr %arguments, i64 1
  %arena.object = load ptr, ptr %arena.object.at
  %arena = call ptr %number(ptr %arena.object)
  %arena.word.at = getelementptr i64, ptr %block, i64 {arena}
  %arena.word = load i64, ptr %arena.word.at
  %arena.at = getelementptr i64, ptr %record, i64 %arena.word
  store ptr %arena, ptr %arena.at
  %ndarray.at = getelementptr i64, ptr %block, i64 {ndarray}
  %ndarray = load ptr, ptr %ndarray.at
  %addresses = getelementptr i64, ptr %record, i64 {first}
  br label %next
next:
  %i = phi i64 [ 2, %entry ], [ %i.next, %taken ]
  %left = icmp slt i64 %i, %given
  br i1 %left, label %take, label %go
take:
  %array.at = getelementptr ptr, ptr %arguments, i64 %i
  %array = load ptr, ptr %array.at
  %type.at = getelementptr i8, ptr %array, i64 {type}
  %type = load ptr, ptr %type.at
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %taken, label %refuse
taken:
  %number.of = sub i64 %i, 2
  %address.at = getelementptr ptr, ptr %addresses, i64 %number.of
  store ptr %array, ptr %address.at
  %i.next = add i64 %i, 1
  br label %next
go:
  %run = load ptr, ptr %block
  %long.at = getelementptr i64, ptr %block, i64 {long}
  %long.word = load i64, ptr %long.at
  %long = icmp ne i64 %long.word, 0
  br i1 %long, label %release, label %compute
compute:
  %short.found = call i64 %run(ptr %record)
  br label %leave
release:
  %save.at = getelementptr i64, ptr %block, i64 {save}
  %save = load ptr, ptr %save.at
  %saved = call ptr %save()
  %long.found = call i64 %run(ptr %record)
  %restore.at = getelementptr i64, ptr %block, i64 {restore}
  %restore = load ptr, ptr %restore.at
  call void %restore(ptr %saved)
  br label %leave
leave:
  %found = phi i64 [ %short.found, %compute ], [ %long.found, %release ]
  %holds = icmp eq i64 %found, 0
  %last = sub i64 %given, 1
  %which = select i1 %holds, i64 %last, i64 0
  %result.at = getelementptr ptr, ptr %arguments, i64 %which
  %result = load ptr, ptr %result.at
  %refer.at = getelementptr i64, ptr %block, i64 {refer}
  %refer = load ptr, ptr %refer.at
  call void %refer(ptr %result)
  ret ptr %result
""" + entry_points.RAISE_TYPE_ERROR + """}}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


@cache
def _start_function_maker() -> Callable[[np.ndarray], Callable[..., Any]]:
    """The function that makes a program's start function from its block."""
    return entry_points.builtin_function_maker("start", _START.format(
        data=entry_points.DATA, type=entry_points.TYPE, first=FIRST, size=_SIZE, arena=_ARENA, long=_LONG,
        template=_TEMPLATE,
        **entry_points.field_indices(_ADDRESSES)))


class Condition(NamedTuple):
    """A step that ends the run unless a byte, a boolean, equals `outcome`."""

    outcome: bool


@cache
def _run_function() -> Callable[[Any], int]:
    function: Callable[[Any], int] = library().function("run", ctypes.c_int64, ctypes.c_void_p)
    return function


class Program:
    """Launches over a table of base addresses, run by one call.

    Args:
        steps: pairs of a launch or condition and its pointers, each the index of a base and an offset in bytes.
        objects: how many of the first bases are array objects, from which the address of the data is read.
        bases: the number of bases.
    """

    __slots__ = ("_keep", "bases", "call", "count", "objects", "shares", "table")

    def __init__(self, steps: Sequence[tuple[Launch | Condition, Sequence[tuple[int, int]]]], objects: int,
                 bases: int) -> None:
        self.objects, self.bases = objects, bases
        self.call = _run_function()
        self._keep: list[Any] = []
        self.shares = any(isinstance(each, Launch) and each.shared for each, _ in steps)
        words: list[int] = []
        plans: dict[int, int] = {}  # steps of one launch share its plan
        for launch, pointers in steps:
            if len(pointers) > POINTERS:
                raise ValueError(f"a kernel of {len(pointers)} operands: at most {POINTERS} are possible")
            if isinstance(launch, Condition):
                pairs = (ctypes.c_int64 * 2)(*pointers[0])
                self._keep.append(pairs)
                words += [0, int(launch.outcome), 0, 0, 1, ctypes.addressof(pairs)]
                continue
            plan = plans.get(id(launch))
            if plan is None:
                array, plan = addressed_plan(launch.words)
                plans[id(launch)] = plan
                self._keep += [launch.library, array]
            pairs = (ctypes.c_int64 * max(1, 2 * len(pointers)))(*[each for pair in pointers for each in pair])
            self._keep.append(pairs)
            words += [resolve(launch.body), launch.chunks, plan, resolve(launch.then), len(pointers),
                      ctypes.addressof(pairs)]
        self.count = len(steps)
        self.table = (ctypes.c_int64 * max(1, len(words)))(*words)

    def record(self) -> Any:
        """The argument of a run: a ctypes array whose base addresses, from `FIRST` on, are to be filled in."""
        record = (ctypes.c_void_p * (FIRST + self.bases))()
        self.enter(record)
        return record

    def enter(self, record: Any) -> None:
        """Write this program's steps and counts into a record; its base addresses stay."""
        record[1] = ctypes.addressof(self.table)
        record[2], record[3], record[4] = self.count, self.objects, self.bases

    def start_function(self, template: Any, arena: int) -> Callable[..., Any]:
        """A built-in function `(pool, arena, *arrays)` that runs all steps; the first two arguments are addresses.

        It returns the last array if all conditions hold, else the pool's address.

        Args:
            template: a record with the base addresses that are constant.
            arena: the index of the record's word that the second argument sets.
        """
        # a program that one thread runs in some ten microseconds keeps the GIL
        head = [library().address("run"), len(template), arena, self.shares, *entry_points.block_fields()]
        block = np.concatenate([np.array(head, np.int64), np.frombuffer(template, np.int64)])
        return _start_function_maker()(block)

    def restrict(self, record: Any, first: int, count: int) -> None:
        """Restrict the record's next run to `count` steps from step `first`, until `enter` is called."""
        record[0] = thread_pool.pool()
        record[1], record[2] = ctypes.addressof(self.table) + 8 * STEP_WORDS * first, count

    def __call__(self, record: Any) -> int:
        """Run all steps: 0, or the number, from 1 on, of the condition that does not hold."""
        record[0] = thread_pool.pool()
        failed: int = self.call(record)
        return failed


def allocate_aligned(size: int) -> tuple[np.ndarray, int]:
    """Allocate `size` bytes: the array that owns them and the aligned address in it."""
    memory = np.empty(size + ALIGNMENT, np.uint8)
    return memory, -(-memory.ctypes.data // ALIGNMENT) * ALIGNMENT


def run(launches: Sequence[Launch], operands: Sequence[np.ndarray]) -> None:
    """Run a list of launches on arrays, outputs first."""
    scratch = max((each.scratch for each in launches), default=0)
    count = len(operands)
    pointers = [(i, 0) for i in range(count + bool(scratch))]
    program = Program([(launch, pointers) for launch in launches], count, len(pointers))
    record = program.record()
    for i, array in enumerate(operands):
        record[FIRST + i] = id(array)
    memory = None
    if scratch:
        memory, record[FIRST + count] = allocate_aligned(scratch)
    program(record)
    del memory


__all__ = [
    "ALIGNMENT",
    "FIRST",
    "POINTERS",
    "Condition",
    "Launch",
    "Program",
    "Spec",
    "addressed_plan",
    "allocate_aligned",
    "library",
    "resolve",
    "run",
]
