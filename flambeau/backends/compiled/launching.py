"""Launch plans: compiled launches for arrays of given layouts, cached by layout and run by one call.

A plan has the metadata of the results and a compiled entry point, a built-in function (`METH_FASTCALL`) that takes the
arrays, reads their data pointers and runs the launches in order. A call through ctypes would take as long as a kernel
on some thousand elements.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ...kernels.memory_format import elementwise_strides
from ...runtime import entry_points, launch, thread_pool
from ...runtime.filling import Filling, NewArray, with_filling
from ...runtime.launch import Launch

ndarray = np.ndarray
empty = np.empty

#: the most plans in one cache
MAX_PLANS = 1024
_BYTE = np.dtype(np.uint8)
#: words of a plan's block: the number of launches, whether there is scratch memory, whether to release the GIL, the
#: number of scalars, a bit mask of those that are doubles; the fields of `entry_points`; then EACH words per launch
SCRATCH, RELEASES_GIL, _SCALARS, _DOUBLES, _ADDRESSES = range(1, 6)
HEAD = _ADDRESSES + entry_points.FIELD_COUNT
#: words of a launch: its body, the number of chunks, the address of its plan, and what is called after all chunks
EACH, CHUNKS, ADDRESS = 4, 1, 2
_DOUBLE = np.dtype(np.float64)

_IR = """
define ptr @enter(ptr %self, ptr %arguments, i64 %given) {{
entry:
  %block.at = getelementptr i8, ptr %self, i64 {data}
  %block = load ptr, ptr %block.at
  %pool.object = load ptr, ptr %arguments
  %number.at = getelementptr i64, ptr %block, i64 {address_of}
  %number = load ptr, ptr %number.at
  %pool = call ptr %number(ptr %pool.object)
  %scratch.at = getelementptr i64, ptr %block, i64 {scratch}
  %scratch = load i64, ptr %scratch.at
  %numbers.at = getelementptr i64, ptr %block, i64 {numbers}
  %numbers = load i64, ptr %numbers.at
  %doubles.at = getelementptr i64, ptr %block, i64 {doubles}
  %doubles = load i64, ptr %doubles.at
  %float.at = getelementptr i64, ptr %block, i64 {float_of}
  %float = load ptr, ptr %float.at
  %ndarray.at = getelementptr i64, ptr %block, i64 {ndarray}
  %ndarray = load ptr, ptr %ndarray.at
  %before = add i64 %scratch, 1
  %arrays.given = sub i64 %given, %before
  %arrays = sub i64 %arrays.given, %numbers
  %pointers = alloca ptr, i64 %given, align 16
  %values = alloca i64, i64 %given, align 16
  %objects = getelementptr ptr, ptr %arguments, i64 %before
  %result = load ptr, ptr %objects
  br label %read
read:
  %i = phi i64 [ 0, %entry ], [ %i.next, %its.data ]
  %array.at = getelementptr ptr, ptr %objects, i64 %i
  %array = load ptr, ptr %array.at
  %type.at = getelementptr i8, ptr %array, i64 {type}
  %type = load ptr, ptr %type.at
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %its.data, label %refuse
its.data:
  %data.at = getelementptr i8, ptr %array, i64 {data}
  %data = load ptr, ptr %data.at
  %pointer.at = getelementptr ptr, ptr %pointers, i64 %i
  store ptr %data, ptr %pointer.at
  %i.next = add i64 %i, 1
  %unread = icmp slt i64 %i.next, %arrays
  br i1 %unread, label %read, label %count.numbers
count.numbers:
  %j = phi i64 [ %arrays, %its.data ], [ %j.next, %stored ]
  %uncounted = icmp slt i64 %j, %arrays.given
  br i1 %uncounted, label %take, label %prepare
take:
  %object.at = getelementptr ptr, ptr %objects, i64 %j
  %object = load ptr, ptr %object.at
  %double = call double %float(ptr %object)
  %doubtful = fcmp oeq double %double, -1.0
  br i1 %doubtful, label %doubt, label %place.number
doubt:
  %occurred.at = getelementptr i64, ptr %block, i64 {occurred}
  %occurred = load ptr, ptr %occurred.at
  %raised = call ptr %occurred()
  %wrong = icmp ne ptr %raised, null
  br i1 %wrong, label %leave.wrong, label %place.number
leave.wrong:
  ret ptr null
place.number:
  %value.at = getelementptr i64, ptr %values, i64 %j
  %place.at = getelementptr ptr, ptr %pointers, i64 %j
  store ptr %value.at, ptr %place.at
  %which = sub i64 %j, %arrays
  %bits = lshr i64 %doubles, %which
  %bit = and i64 %bits, 1
  %is.double = icmp ne i64 %bit, 0
  br i1 %is.double, label %as.double, label %as.single
as.double:
  store double %double, ptr %value.at
  br label %stored
as.single:
  %single = fptrunc double %double to float
  store float %single, ptr %value.at
  br label %stored
stored:
  %j.next = add i64 %j, 1
  br label %count.numbers
prepare:
  %some = icmp ne i64 %scratch, 0
  br i1 %some, label %align, label %go
align:
  %memory.object.at = getelementptr ptr, ptr %arguments, i64 1
  %memory.object = load ptr, ptr %memory.object.at
  %memory.at = getelementptr i8, ptr %memory.object, i64 {data}
  %memory = load ptr, ptr %memory.at
  %address = ptrtoint ptr %memory to i64
  %above = add i64 %address, {alignment_mask}
  %aligned = and i64 %above, -{alignment}
  %aligned.pointer = inttoptr i64 %aligned to ptr
  %last.at = getelementptr ptr, ptr %pointers, i64 %arrays.given
  store ptr %aligned.pointer, ptr %last.at
  br label %go
go:
  %share.at = getelementptr i8, ptr %pool, i64 {run}
  %share = load ptr, ptr %share.at
  %count = load i64, ptr %block
  %long.at = getelementptr i64, ptr %block, i64 {long}
  %long.word = load i64, ptr %long.at
  %long = icmp ne i64 %long.word, 0
  br i1 %long, label %release, label %first
release:
  %save.at = getelementptr i64, ptr %block, i64 {save}
  %save = load ptr, ptr %save.at
  %saved = call ptr %save()
  br label %first
first:
  %state = phi ptr [ null, %go ], [ %saved, %release ]
  br label %step
step:
  %k = phi i64 [ 0, %first ], [ %k.next, %done ]
  %offset = mul i64 %k, {each}
  %place = add i64 %offset, {head}
  %launch = getelementptr i64, ptr %block, i64 %place
  %chunks.at = getelementptr i64, ptr %launch, i64 1
  %plan.at = getelementptr i64, ptr %launch, i64 2
  %then.at = getelementptr i64, ptr %launch, i64 3
  %body = load ptr, ptr %launch
  %chunks = load i64, ptr %chunks.at
  %plan = load ptr, ptr %plan.at
  %then = load ptr, ptr %then.at
  %several = icmp sgt i64 %chunks, 1
  br i1 %several, label %many, label %one
many:
  call void %share(ptr %pool, ptr %body, ptr %pointers, ptr %plan, i64 %chunks)
  br label %after
one:
  call void %body(ptr %pointers, ptr %plan, i64 0)
  br label %after
after:
  %ends = icmp ne ptr %then, null
  br i1 %ends, label %finish, label %done
finish:
  call void %then(ptr %pointers, ptr %plan, i64 0)
  br label %done
done:
  %k.next = add i64 %k, 1
  %more = icmp slt i64 %k.next, %count
  br i1 %more, label %step, label %last
last:
  br i1 %long, label %restore, label %leave
restore:
  %restore.at = getelementptr i64, ptr %block, i64 {restore}
  %restore.function = load ptr, ptr %restore.at
  call void %restore.function(ptr %state)
  br label %leave
leave:
  %refer.at = getelementptr i64, ptr %block, i64 {refer}
  %refer = load ptr, ptr %refer.at
  call void %refer(ptr %result)
  ret ptr %result
""" + entry_points.RAISE_TYPE_ERROR + """}}
"""


def _generate() -> str:
    return _IR.format(data=entry_points.DATA, run=thread_pool.RUN_OFFSET, head=HEAD, each=EACH,
                      alignment=launch.ALIGNMENT, alignment_mask=launch.ALIGNMENT - 1, scratch=SCRATCH,
                      long=RELEASES_GIL, numbers=_SCALARS, doubles=_DOUBLES, type=entry_points.TYPE,
                      **entry_points.field_indices(_ADDRESSES))


@cache
def _entry_point_maker() -> Callable[[np.ndarray], Callable[..., Any]]:
    """The function that makes a built-in function from a plan's block."""
    return entry_points.builtin_function_maker("enter", _generate())


def block_head(launches: int, scalars: Sequence[np.dtype]) -> list[int]:
    """The first words of the block of so many launches, without scratch memory, that holds the GIL."""
    doubles = sum(1 << i for i, dtype in enumerate(scalars) if dtype == _DOUBLE)
    return [launches, False, False, len(scalars), doubles, *entry_points.block_fields()]


class Plan:
    """Launches for arrays of given layouts.

    Args:
        outs: shape, dtype and strides (None: row-major) of each result.
        launches: over the pointers of the results, the arrays and the scalars.
        scalars: dtypes of Python numbers that are passed after the arrays: float32 or float64.

    Attributes:
        enter: the entry point, `enter(pool, *results, *arrays, *scalars)`, which returns the first result; with scratch
            memory, `enter(pool, scratch, ...)`. None where there are no launches.
        scratch: bytes of scratch memory, without padding for alignment.
        divided: whether a launch has several chunks, which threads share.
    """

    __slots__ = ("_references", "divided", "enter", "outs", "scratch")

    def __init__(self, outs: Sequence[tuple[tuple[int, ...], np.dtype, tuple[int, ...] | None]],
                 launches: Sequence[Launch], scalars: Sequence[np.dtype] = ()) -> None:
        self.outs = tuple(outs)
        self.scratch = max((each.scratch for each in launches), default=0)
        self.enter: Any = None
        self.divided = any(each.chunks > 1 for each in launches)
        self._references: list[Any] = []
        if not launches:
            return
        words = block_head(len(launches), scalars)
        words[SCRATCH] = bool(self.scratch)
        words[RELEASES_GIL] = any(each.shared for each in launches)  # one of less than about 10 us holds the GIL
        for each in launches:
            plan, address = launch.addressed_plan(each.words)
            self._references += (each.library, plan)
            words += [launch.resolve(each.body), each.chunks, address, launch.resolve(each.then)]
        self.enter = _entry_point_maker()(np.array(words, np.int64))

    @classmethod
    def of_block(cls, block: ndarray, outs: Sequence[tuple[tuple[int, ...], np.dtype, tuple[int, ...] | None]],
                 scratch: int, divided: bool, owners: list[Any]) -> Plan:
        """The plan of a block that is complete (`plan_families`).

        Args:
            owners: of what the block refers to.
        """
        plan = cls.__new__(cls)
        plan.outs, plan.scratch, plan.divided, plan._references = tuple(outs), scratch, divided, owners
        plan.enter = _entry_point_maker()(block)
        return plan

    def address_of(self, number: int, word: int) -> int:
        """The address of a word of a launch's plan, or of the number of its chunks: -1."""
        block: ndarray = self.enter.__self__
        at = HEAD + EACH * number
        return int(block[at + ADDRESS]) + 8 * word if word >= 0 else block.ctypes.data + 8 * (at + CHUNKS)

    def run(self, arrays: Sequence[Any]) -> None:
        """Run the launches on these results, arrays and scalars."""
        if self.enter is None:
            return
        if self.scratch:
            self.enter(thread_pool.pool(), empty(self.scratch + launch.ALIGNMENT, _BYTE), *arrays)
        else:
            self.enter(thread_pool.pool(), *arrays)


def launch_of_outputs(outs: Sequence[tuple[tuple[int, ...], np.dtype]],
                      launches: Sequence[Launch]) -> Callable[[ndarray], tuple[ndarray, ...]] | None:
    """The function of an array that runs launches over (*results, array) and gives the results, row-major arrays.

    Args:
        outs: shape and dtype of each result.
    """
    plan = Plan([(*each, None) for each in outs], launches)
    if plan.enter is None:
        return None
    enter, pool = plan.enter, thread_pool.pool
    scratch = plan.scratch and plan.scratch + launch.ALIGNMENT

    def run(a: ndarray, _plan: Plan = plan) -> tuple[ndarray, ...]:  # which owns what `enter` reads
        results = tuple([empty(shape, dtype) for shape, dtype in outs])
        if scratch:
            enter(pool(), empty(scratch, _BYTE), *results, a)
        else:
            enter(pool(), *results, a)
        return results

    return run


def launch_of_result(shape: tuple[int, ...], dtype: np.dtype, launches: Sequence[Launch],
                     count: int) -> Callable[..., ndarray] | None:
    """The function of `count` arrays that runs launches over (result, *arrays) and gives the row-major result."""
    plan = Plan([(shape, dtype, None)], launches)
    if plan.enter is None or plan.scratch:
        return None
    enter, pool = plan.enter, thread_pool.pool

    def run(*arrays: ndarray, _plan: Plan = plan) -> ndarray:  # which owns what `enter` reads
        return enter(pool(), empty(shape, dtype), *arrays)

    return with_filling(run, filling_of(plan, range(count)))


def filling_of(plan: Plan, operands: Iterable[Any],
               shapes: Sequence[tuple[int, ...]] | None = None) -> Filling | None:
    """A plan of new row-major results as `Filling`; None where threads share a launch.

    Args:
        operands: the sources of the arrays and the scalars.
        shapes: of the results, where the plan has them in other shapes.
    """
    if plan.divided or plan.enter is None or any(strides is not None for *_, strides in plan.outs):
        return None
    pool, owner = thread_pool.lasting_pool()
    new = [NewArray(out[0] if shapes is None else shapes[i], out[1]) for i, out in enumerate(plan.outs)]
    if plan.scratch:
        new.insert(0, NewArray((plan.scratch + launch.ALIGNMENT,), _BYTE))
    return Filling(plan.enter, ([pool], *new, *operands), (plan, owner), int(plan.scratch > 0))


class PlanCache:
    """Plans by the layouts of their arrays; cleared when full."""

    def __init__(self) -> None:
        self.plans: dict[Any, Plan] = {}
        self._lock = threading.Lock()

    def insert(self, key: Any, plan: Plan) -> Plan:
        """Add a plan and return it."""
        with self._lock:
            if len(self.plans) >= MAX_PLANS:
                self.plans.clear()
            self.plans[key] = plan
        return plan


def new_array(shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...] | None) -> np.ndarray:
    """A new array, row-major if `strides` is None."""
    return empty(shape, dtype) if strides is None else ndarray(shape, dtype, None, 0, strides)


def result_strides(shape: tuple[int, ...], operands: Sequence[np.ndarray],
               dtype: np.dtype) -> tuple[int, ...] | None:
    """The strides that PyTorch gives the result of broadcast operands; None: row-major."""
    if len(shape) < 2:
        return None
    strides = elementwise_strides(shape, operands)
    return None if strides is None else tuple([s * dtype.itemsize for s in strides])


__all__ = ["Plan", "PlanCache", "filling_of", "launch_of_outputs", "launch_of_result", "new_array", "result_strides"]
