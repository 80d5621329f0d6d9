"""The functions of a WebAssembly module that let workers join its pool of threads, as LLVM IR.

A module with threads has one pool, which is static memory: a memory belongs to one model. The loader starts the
workers, each of which makes an instance of the module over the same memory. The locks that `runtime.thread_pool` calls
are made of atomic words here. The thread of a page may not wait on one, so whoever locks spins, which the few
instructions under a lock allow. Workers wait where they have nothing to do. A caller whose workers are late spins in a
page, and else waits a moment.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....runtime import thread_pool
from ..interface import Interface

#: how often an idle worker looks for work before it waits: some 0.5 ms
_SPINS = 16000
#: nanoseconds that a caller waits where other threads are late
_PAUSE = 50_000
#: bytes of the word that says how long the text of a worker's error is, and of the text
FAILURE_BYTES = 512


def web_pool_functions(interface: Interface, variant: str) -> Iterator[str]:
    """The functions.

    Args:
        interface: the interface of the module.
        variant: the prefix of the code whose threads these are, `NAME_VARIANT`.
    """
    name, calls = interface.name, ("lock", "unlock", "wait", "wake", "spin")
    yield f"""@{name}_pool = internal global [{thread_pool.SIZE} x i8] zeroinitializer, align 64
@{name}_failed = internal global [{FAILURE_BYTES} x i8] zeroinitializer, align 64
@{name}_never = internal global i32 0, align 64
declare hidden void @{variant}_work(ptr, i64)
declare i32 @llvm.wasm.memory.atomic.wait32(ptr, i32, i64)
declare i32 @llvm.wasm.memory.atomic.notify(ptr, i32)
declare void @llvm.trap()
define internal i32 @{name}_lock(ptr %mutex) {{
entry:
  br label %try
try:
  %swap = cmpxchg ptr %mutex, i32 0, i32 1 seq_cst seq_cst
  %won = extractvalue {{ i32, i1 }} %swap, 1
  br i1 %won, label %done, label %again
again:
  fence seq_cst
  br label %try
done:
  ret i32 0
}}
define internal i32 @{name}_unlock(ptr %mutex) {{
  store atomic i32 0, ptr %mutex seq_cst, align 4
  ret i32 0
}}
define internal i32 @{name}_wait(ptr %condition, ptr %mutex) {{
  %seen = load atomic i32, ptr %condition seq_cst, align 4
  %r0 = call i32 @{name}_unlock(ptr %mutex)
  %r1 = call i32 @llvm.wasm.memory.atomic.wait32(ptr %condition, i32 %seen, i64 -1)
  %r2 = call i32 @{name}_lock(ptr %mutex)
  ret i32 0
}}
define internal i32 @{name}_wake(ptr %condition) {{
  %before = atomicrmw add ptr %condition, i32 1 seq_cst
  %woken = call i32 @llvm.wasm.memory.atomic.notify(ptr %condition, i32 -1)
  ret i32 0
}}
define internal i32 @{name}_spin() {{
entry:
  %length = load atomic i32, ptr @{name}_failed seq_cst, align 4
  %fine = icmp eq i32 %length, 0
  br i1 %fine, label %return, label %fail
return:
  ret i32 0
fail:
  call void @llvm.trap()
  unreachable
}}
define internal i32 @{name}_pause() {{
  %r0 = call i32 @{name}_spin()
  %r1 = call i32 @llvm.wasm.memory.atomic.wait32(ptr @{name}_never, i32 0, i64 {_PAUSE})
  ret i32 0
}}
define ptr @{name}_pool_start(i32 %threads, i32 %may_wait) {{"""
    for i, each in enumerate(calls):
        at = thread_pool.CALLS_OFFSET + 8 * i
        yield f"  %call.{i} = getelementptr i8, ptr @{name}_pool, i32 {at}\n  store ptr @{name}_{each}, ptr %call.{i}"
    yield f"""  %waits = icmp ne i32 %may_wait, 0
  %give = select i1 %waits, ptr @{name}_pause, ptr @{name}_spin
  store ptr %give, ptr %call.{len(calls) - 1}
  %spins = getelementptr i8, ptr @{name}_pool, i32 {thread_pool.SPINS_OFFSET}
  store i64 {_SPINS}, ptr %spins, align 8
  %one.less = sub i32 %threads, 1
  %workers = zext i32 %one.less to i64
  %members = getelementptr i8, ptr @{name}_pool, i32 {thread_pool.MEMBERS_OFFSET}
  store atomic i64 %workers, ptr %members seq_cst, align 8
  ret ptr @{name}_pool
}}
define void @{name}_pool_work(i32 %member) {{
  %number = zext i32 %member to i64
  call void @{variant}_work(ptr @{name}_pool, i64 %number)
  ret void
}}
define void @{name}_pool_stop() {{
  %stop = getelementptr i8, ptr @{name}_pool, i32 {thread_pool.STOP_OFFSET}
  store atomic i64 1, ptr %stop seq_cst, align 8
  %mutex = getelementptr i8, ptr @{name}_pool, i32 {thread_pool.MUTEX_OFFSET}
  %condition = getelementptr i8, ptr @{name}_pool, i32 {thread_pool.CONDITION_OFFSET}
  %r0 = call i32 @{name}_lock(ptr %mutex)
  %r1 = call i32 @{name}_unlock(ptr %mutex)
  %r2 = call i32 @{name}_wake(ptr %condition)
  ret void
}}
define ptr @{name}_pool_failure() {{
  ret ptr @{name}_failed
}}"""


__all__ = ["FAILURE_BYTES", "web_pool_functions"]
