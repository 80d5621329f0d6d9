"""The thread pool that runs kernels' chunks, in generated code.

The worker threads wait in generated code, so handing work over needs neither the GIL nor the interpreter. A task is a
function of a chunk's number. The caller starts on the chunks at once and every thread takes the next one left, so a
late or slow thread delays nothing. The caller and half of the workers take chunks from the first on, the others from
the last one back: so a thread tends to get the same part of an array in consecutive tasks and finds it in its own cache
(an operator that reads the output of the one before takes a sixth to a quarter less time). While one caller has the
pool, others run their chunks themselves: no call waits for another, and its result does not depend on
which thread computed which chunk.

An idle worker spins for a while (`SPIN_SECONDS`) before it sleeps. The duration matters: a sleeping thread wakes late,
now and then by milliseconds on a virtual machine, where sleeping yields the processor. Between two operators of a
program there are some microseconds, or the time of an operator that one thread runs.

The chunks left of a task and a counter of tasks form one atomic word (the ticket): a thread that wakes late can
neither take a chunk of a task that has ended nor end a task that it does not know. Tasks of a million chunks and more
run on the caller alone.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ..kernels import threads as limits
from . import compilation

# The pool's fields, in bytes from its start. Fields that different threads write are on different cache lines.
_TICKET, _DONE, _TASK, _BUSY, _SLEEPING, _CALLS, _MUTEX, _CONDITION, _SIZE = 0, 64, 128, 192, 256, 320, 384, 512, 640
_STOP, _MEMBERS, _SPINS = _SLEEPING + 8, _SLEEPING + 16, _SLEEPING + 24

# bits of the ticket for the first chunk left, and for the end of the chunks left; the other bits count tasks
_BITS = 20

#: the byte offset of the pool's field that holds the address of its `run`
RUN_OFFSET = _CALLS + 40
#: bytes of the fields, and the offsets of those that are set when a pool is made
SIZE = _SIZE
CALLS_OFFSET, MUTEX_OFFSET, CONDITION_OFFSET = _CALLS, _MUTEX, _CONDITION
STOP_OFFSET, MEMBERS_OFFSET, SPINS_OFFSET = _STOP, _MEMBERS, _SPINS

#: added to a number of chunks that the caller runs alone, since they are too small to share
CALLER_ONLY = 1 << 32

#: seconds that an idle worker spins before it sleeps
SPIN_SECONDS = 0.001
#: how often the caller checks whether the others have finished before it yields the processor
_CALLER_SPINS = 2000
#: the number of spins that are timed
_TIMED_SPINS = 4000

_IR = """
{declared}
define void @work(ptr %pool, i64 %member) {{
entry:
  %done = getelementptr i8, ptr %pool, i64 {done}
  %task = getelementptr i8, ptr %pool, i64 {task}
  %pointers.at = getelementptr i8, ptr %task, i64 8
  %plan.at = getelementptr i8, ptr %task, i64 16
  %odd = and i64 %member, 1
  %upper = icmp eq i64 %odd, 0
  %step = select i1 %upper, i64 -{one_above}, i64 1
  %sleeping = getelementptr i8, ptr %pool, i64 {sleeping}
  %stop = getelementptr i8, ptr %pool, i64 {stop}
  %limit = getelementptr i8, ptr %pool, i64 {members}
  %calls = getelementptr i8, ptr %pool, i64 {calls}
  %lock.at = getelementptr i8, ptr %calls, i64 0
  %unlock.at = getelementptr i8, ptr %calls, i64 8
  %wait.at = getelementptr i8, ptr %calls, i64 16
  %lock = load ptr, ptr %lock.at
  %unlock = load ptr, ptr %unlock.at
  %wait = load ptr, ptr %wait.at
  %mutex = getelementptr i8, ptr %pool, i64 {mutex}
  %condition = getelementptr i8, ptr %pool, i64 {condition}
  %spin.limit.at = getelementptr i8, ptr %pool, i64 {spins}
  %spin.limit = load i64, ptr %spin.limit.at
  br label %look
look:
  %spins = phi i64 [ 0, %entry ], [ %spins.next, %nothing ], [ 0, %ran ], [ %spins, %lost ], [ 0, %woken ]
  %ticket = load atomic i64, ptr %pool seq_cst, align 8
  %low = and i64 %ticket, {chunks}
  %shifted = lshr i64 %ticket, {bits}
  %high = and i64 %shifted, {chunks}
  %some = icmp ne i64 %low, %high
  %most = load atomic i64, ptr %limit monotonic, align 8
  %active = icmp slt i64 %member, %most
  %mine = and i1 %some, %active
  br i1 %mine, label %take, label %nothing
take:
  %taken = add i64 %ticket, %step
  %swap = cmpxchg ptr %pool, i64 %ticket, i64 %taken acq_rel monotonic
  %won = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %won, label %run, label %lost
lost:
  br label %look
run:
  %function = load ptr, ptr %task
  %pointers = load ptr, ptr %pointers.at
  %plan = load ptr, ptr %plan.at
  %last = sub i64 %high, 1
  %chunk = select i1 %upper, i64 %last, i64 %low
  call void %function(ptr %pointers, ptr %plan, i64 %chunk)
  %before = atomicrmw add ptr %done, i64 1 release
  br label %ran
ran:
  br label %look
nothing:
  {pause}
  %spins.next = add i64 %spins, 1
  %enough = icmp sgt i64 %spins.next, %spin.limit
  br i1 %enough, label %sleep, label %look
sleep:
  %r0 = call i32 %lock(ptr %mutex)
  %s0 = atomicrmw add ptr %sleeping, i64 1 seq_cst
  br label %asleep
asleep:
  %stopped = load atomic i64, ptr %stop seq_cst, align 8
  %end = icmp ne i64 %stopped, 0
  br i1 %end, label %leave, label %check
check:
  %ticket2 = load atomic i64, ptr %pool seq_cst, align 8
  %low2 = and i64 %ticket2, {chunks}
  %shifted2 = lshr i64 %ticket2, {bits}
  %high2 = and i64 %shifted2, {chunks}
  %some2 = icmp ne i64 %low2, %high2
  %most2 = load atomic i64, ptr %limit monotonic, align 8
  %active2 = icmp slt i64 %member, %most2
  %mine2 = and i1 %some2, %active2
  br i1 %mine2, label %woken, label %wait.more
wait.more:
  %r1 = call i32 %wait(ptr %condition, ptr %mutex{wait_arguments})
  br label %asleep
woken:
  %s1 = atomicrmw sub ptr %sleeping, i64 1 seq_cst
  %r2 = call i32 %unlock(ptr %mutex)
  br label %look
leave:
  %s2 = atomicrmw sub ptr %sleeping, i64 1 seq_cst
  %r3 = call i32 %unlock(ptr %mutex)
  ret void
}}

define i64 @spin(ptr %pool, i64 %count) {{
entry:
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %i.next, %look ]
  %ticket = load atomic i64, ptr %pool seq_cst, align 8
  {pause}
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %count
  br i1 %more, label %look, label %end
end:
  ret i64 %ticket
}}

define void @run(ptr %pool, ptr %function, ptr %pointers, ptr %plan, i64 %chunks) {{
entry:
  %total = and i64 %chunks, {most}
  %caller.only = icmp ugt i64 %chunks, {chunks}
  br i1 %caller.only, label %alone, label %together
together:
  %members = getelementptr i8, ptr %pool, i64 {members}
  %others = load atomic i64, ptr %members monotonic, align 8
  %none = icmp eq i64 %others, 0
  br i1 %none, label %alone, label %ask
ask:
  %busy = getelementptr i8, ptr %pool, i64 {busy}
  %grab = cmpxchg ptr %busy, i64 0, i64 1 acquire monotonic
  %free = extractvalue {{ i64, i1 }} %grab, 1
  br i1 %free, label %publish, label %alone
alone:
  %any = icmp sgt i64 %total, 0
  br i1 %any, label %each, label %finished
each:
  %i = phi i64 [ 0, %alone ], [ %i.next, %each ]
  call void %function(ptr %pointers, ptr %plan, i64 %i)
  %i.next = add i64 %i, 1
  %again = icmp slt i64 %i.next, %total
  br i1 %again, label %each, label %finished
finished:
  ret void
publish:
  %done = getelementptr i8, ptr %pool, i64 {done}
  %task = getelementptr i8, ptr %pool, i64 {task}
  %pointers.at = getelementptr i8, ptr %task, i64 8
  %plan.at = getelementptr i8, ptr %task, i64 16
  %sleeping = getelementptr i8, ptr %pool, i64 {sleeping}
  %calls = getelementptr i8, ptr %pool, i64 {calls}
  store ptr %function, ptr %task
  store ptr %pointers, ptr %pointers.at
  store ptr %plan, ptr %plan.at
  store atomic i64 0, ptr %done monotonic, align 8
  %old = load atomic i64, ptr %pool monotonic, align 8
  %past = lshr i64 %old, {number}
  %number = add i64 %past, 1
  %first = shl i64 %number, {number}
  %end = shl i64 %total, {bits}
  %new = or i64 %first, %end
  %was = atomicrmw xchg ptr %pool, i64 %new seq_cst
  %sleepers = load atomic i64, ptr %sleeping seq_cst, align 8
  %asleep = icmp ne i64 %sleepers, 0
  br i1 %asleep, label %wake, label %look
wake:
  %lock.at = getelementptr i8, ptr %calls, i64 0
  %unlock.at = getelementptr i8, ptr %calls, i64 8
  %wake.at = getelementptr i8, ptr %calls, i64 24
  %lock = load ptr, ptr %lock.at
  %unlock = load ptr, ptr %unlock.at
  %wake.all = load ptr, ptr %wake.at
  %mutex = getelementptr i8, ptr %pool, i64 {mutex}
  %condition = getelementptr i8, ptr %pool, i64 {condition}
  %r0 = call i32 %lock(ptr %mutex)
  %r1 = call i32 %unlock(ptr %mutex)
  %r2 = call i32 %wake.all(ptr %condition)
  br label %look
look:
  %ticket = load atomic i64, ptr %pool monotonic, align 8
  %low = and i64 %ticket, {chunks}
  %shifted = lshr i64 %ticket, {bits}
  %high = and i64 %shifted, {chunks}
  %some = icmp ne i64 %low, %high
  br i1 %some, label %take, label %await
take:
  %taken = add i64 %ticket, 1
  %swap = cmpxchg ptr %pool, i64 %ticket, i64 %taken acq_rel monotonic
  %won = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %won, label %do, label %look
do:
  call void %function(ptr %pointers, ptr %plan, i64 %low)
  %before = atomicrmw add ptr %done, i64 1 release
  br label %look
await:
  %spins = phi i64 [ 0, %look ], [ %spins.next, %turn ]
  %count = load atomic i64, ptr %done acquire, align 8
  %all.done = icmp eq i64 %count, %total
  br i1 %all.done, label %release, label %still
still:
  {pause}
  %spins.next = add i64 %spins, 1
  %long = icmp sgt i64 %spins, {caller_spins}
  br i1 %long, label %yield, label %turn
yield:
  %yield.at = getelementptr i8, ptr %calls, i64 32
  %give = load ptr, ptr %yield.at
  %r3 = call i32 %give()
  br label %turn
turn:
  br label %await
release:
  store atomic i64 0, ptr %busy release, align 8
  ret void
}}
"""


def _pause() -> tuple[str, str]:
    """The instruction of a thread that spins, and its declaration.

    It is an intrinsic, since LLVM parses inline assembly of this machine only.
    """
    from . import target

    triple = target.host().triple
    if triple.startswith("x86_64"):
        return "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"
    if triple.startswith(("aarch64", "arm64")):
        return "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"
    return "fence seq_cst", ""


def _generate() -> str:
    pause, declared = _pause()
    return _IR.format(done=_DONE, task=_TASK, busy=_BUSY, sleeping=_SLEEPING, calls=_CALLS, mutex=_MUTEX,
                      stop=_STOP, members=_MEMBERS, condition=_CONDITION, spins=_SPINS, caller_spins=_CALLER_SPINS,
                      most=CALLER_ONLY - 1, bits=_BITS, chunks=(1 << _BITS) - 1, one_above=1 << _BITS,
                      number=2 * _BITS, pause=pause, declared=declared,
                      wait_arguments=", i32 -1, i32 0" if sys.platform == "win32" else "")


def library() -> compilation.Library:
    """The pool's generated functions.

    `run(pool, function, pointers, plan, total)` runs a task, `work(pool, member)` is a worker's loop, and
    `spin(pool, count)` spins without work, to be timed.
    """
    return compilation.load(f"threads {sys.platform}", ("run", "work", "spin"), _generate, "few")


def _system_calls() -> list[int]:
    """Addresses of the system's functions: lock, unlock, wait, wake all and yield."""
    if sys.platform == "win32":
        system = ctypes.WinDLL("kernel32")
        names = ("AcquireSRWLockExclusive", "ReleaseSRWLockExclusive", "SleepConditionVariableSRW",
                 "WakeAllConditionVariable", "SwitchToThread")
    else:
        system = ctypes.CDLL(None)
        names = ("pthread_mutex_lock", "pthread_mutex_unlock", "pthread_cond_wait", "pthread_cond_broadcast",
                 "sched_yield")
    return [ctypes.cast(getattr(system, name), ctypes.c_void_p).value or 0 for name in names]


class _NativeThread:
    """A thread of machine code, which `threading.enumerate` does not list: programs look there for their own."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self._running = _thread.allocate_lock()
        self._running.acquire()
        _thread.start_new_thread(self._run, (function, args))

    def _run(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        try:
            function(*args)
        finally:
            self._running.release()

    def join(self, timeout: float) -> None:
        """Wait for its end, at most some seconds."""
        if self._running.acquire(timeout=timeout):
            self._running.release()


class Pool:
    """The pool's fields in memory, and its worker threads.

    Attributes:
        address: the address of the fields, which `run` takes.
        size: the number of threads, the calling one included.
    """

    def __init__(self) -> None:
        self._memory = ctypes.create_string_buffer(_SIZE + 64)
        self.address = -(-ctypes.addressof(self._memory) // 64) * 64
        self.size = 1
        self._threads: list[_NativeThread] = []
        for i, call in enumerate([*_system_calls(), library().address("run")]):
            self._field(_CALLS + 8 * i).value = call
        self._field(_SPINS).value = self._spin_limit()
        if sys.platform != "win32":
            system = ctypes.CDLL(None)
            system.pthread_mutex_init(ctypes.c_void_p(self.address + _MUTEX), None)
            system.pthread_cond_init(ctypes.c_void_p(self.address + _CONDITION), None)

    def _field(self, offset: int) -> Any:
        return ctypes.c_int64.from_address(self.address + offset)

    def _spin_limit(self) -> int:
        """How many spins take `SPIN_SECONDS`: the pause instruction's duration differs widely among processors."""
        spin = library().function("spin", ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
        times = []
        for _ in range(3):
            start = time.perf_counter()
            spin(self.address, _TIMED_SPINS)
            times.append(time.perf_counter() - start)
        return max(1, int(_TIMED_SPINS * SPIN_SECONDS / max(min(times), 1e-9)))

    def resize(self, size: int) -> None:
        """Set the number of threads, the calling one included; starts those that are missing."""
        work = library().function("work", None, ctypes.c_void_p, ctypes.c_int64)
        self._field(_MEMBERS).value = size - 1
        while len(self._threads) < size - 1:
            self._threads.append(_NativeThread(work, self.address, len(self._threads)))
        self.size = size

    def stop(self) -> None:
        """End the threads."""
        if not self._threads:
            return
        call = library().function("run", None, *[ctypes.c_void_p] * 4, ctypes.c_int64)
        self._field(_STOP).value = 1
        # a task, even one without chunks, wakes all sleeping threads
        call(self.address, None, None, None, 0)
        for thread in self._threads:
            thread.join(1.0)
        self._threads.clear()
        self._field(_STOP).value = 0
        self.resize(1)


_pool: Pool | None = None
_starting = threading.Lock()
_default = 0


def _target_size() -> int:
    global _default
    size = limits._limit
    if size is None:
        size = _default = _default or limits.count()
    return max(1, size)


def pool() -> int:
    """The address of the pool, resized to the number of threads that operators may use now."""
    current = _pool
    if current is not None and (limits._limit or _default) == current.size:
        return current.address
    return _resized_pool()


def lasting_pool() -> tuple[int, Pool]:
    """The address of the pool for launches of one chunk, which need no other thread, and its owner."""
    address = pool()
    assert _pool is not None
    return address, _pool


def _resized_pool() -> int:
    global _pool
    size = _target_size()
    with _starting:
        if _pool is None:
            import atexit

            _pool = Pool()
            atexit.register(_stop)
        if _pool.size != size:
            _pool.resize(size)
        return _pool.address


def restart() -> None:
    """End the threads and start as many, which inherit the calling thread's floating point environment."""
    with _starting:
        if _pool is not None:
            size = _pool.size
            _pool.stop()
            _pool.resize(size)


def _stop() -> None:
    if _pool is not None:
        _pool.stop()


def _discard_pool() -> None:
    """Drop the pool in a forked child, where its threads do not exist."""
    global _pool, _starting
    _pool = None
    _starting = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_discard_pool)
