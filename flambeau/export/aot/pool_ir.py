"""The functions of the C interface that start and stop threads, as LLVM IR.

The pool is memory of the caller: the fields of `runtime.thread_pool`, the threads' handles, and what each is told. Its
threads wait in the code that the process uses, and call the C library's threads (part of libc since glibc 2.34).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...runtime import thread_pool
from .interface import STATUSES, Interface

_STATUS = {name: number for number, (name, _) in enumerate(STATUSES)}
#: functions of the C library, in the order of the pool's addresses, and those that only start and stop need
CALLED = ("pthread_mutex_lock", "pthread_mutex_unlock", "pthread_cond_wait", "pthread_cond_broadcast", "sched_yield")
LIBC = (*CALLED, "pthread_mutex_init", "pthread_mutex_destroy", "pthread_cond_init", "pthread_cond_destroy",
        "pthread_create", "pthread_join")  # fmt: skip
#: the most threads of a pool
MAX_THREADS = 64
#: how often an idle thread looks for work before it sleeps: some 0.1 ms
_SPINS = 4000
_ALIGNMENT = 64
_HANDLES = thread_pool.SIZE
_TOLD = _HANDLES + 8 * MAX_THREADS
_BYTES = _TOLD + 16 * MAX_THREADS + _ALIGNMENT


def aligned(memory: str, name: str) -> str:
    """Instructions that give the pool's address, a multiple of a cache line; null stays null."""
    return f"""  %{name}.address = ptrtoint ptr {memory} to i64
  %{name}.up = add i64 %{name}.address, {_ALIGNMENT - 1}
  %{name}.low = and i64 %{name}.up, {-_ALIGNMENT}
  %{name} = inttoptr i64 %{name}.low to ptr"""


def pool_functions(interface: Interface, variant: str) -> Iterator[str]:
    """The functions.

    Args:
        interface: the C interface.
        variant: the prefix of the code whose threads these are, `NAME_VARIANT`.
    """
    name = interface.name
    for each in LIBC:
        arguments = {"pthread_create": "ptr, ptr, ptr, ptr", "pthread_join": "i64, ptr", "sched_yield": "",
                     "pthread_mutex_init": "ptr, ptr", "pthread_cond_init": "ptr, ptr",
                     "pthread_cond_wait": "ptr, ptr"}.get(each, "ptr")  # fmt: skip
        yield f"declare i32 @{each}({arguments})"
    yield f"declare hidden void @{variant}_work(ptr, i64)"
    yield f"declare hidden void @{variant}_share(ptr, ptr, ptr, ptr, i64)"
    yield "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
    yield f"""define internal ptr @{name}_thread(ptr %told) {{
  %pool = load ptr, ptr %told, align 8
  %member.at = getelementptr i8, ptr %told, i64 8
  %member = load i64, ptr %member.at, align 8
  call void @{variant}_work(ptr %pool, i64 %member)
  ret ptr null
}}
define i64 @{name}_pool_size() {{
  ret i64 {_BYTES}
}}
define i32 @{name}_pool_start(ptr %memory, i64 %bytes, i32 %threads) {{
entry:
  %is.null = icmp eq ptr %memory, null
  br i1 %is.null, label %null, label %some
null:
  ret i32 {_STATUS["NULL_POINTER"]}
some:
  %is.small = icmp ult i64 %bytes, {_BYTES}
  br i1 %is.small, label %small, label %enough
small:
  ret i32 {_STATUS["SMALL_POOL"]}
enough:
  %few = icmp slt i32 %threads, 1
  %many = icmp sgt i32 %threads, {MAX_THREADS}
  %wrong = or i1 %few, %many
  br i1 %wrong, label %bad, label %fine
bad:
  ret i32 {_STATUS["NO_THREADS"]}
fine:
{aligned("%memory", "pool")}
  call void @llvm.memset.p0.i64(ptr align 64 %pool, i8 0, i64 {_BYTES - _ALIGNMENT}, i1 false)"""
    for i, each in enumerate([*(f"@{call}" for call in CALLED), f"@{variant}_share"]):
        yield f"  %call.{i} = getelementptr i8, ptr %pool, i64 {thread_pool.CALLS_OFFSET + 8 * i}"
        yield f"  store ptr {each}, ptr %call.{i}, align 8"
    yield f"""  %spins = getelementptr i8, ptr %pool, i64 {thread_pool.SPINS_OFFSET}
  store i64 {_SPINS}, ptr %spins, align 8
  %mutex = getelementptr i8, ptr %pool, i64 {thread_pool.MUTEX_OFFSET}
  %condition = getelementptr i8, ptr %pool, i64 {thread_pool.CONDITION_OFFSET}
  %r0 = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %r1 = call i32 @pthread_cond_init(ptr %condition, ptr null)
  %members = getelementptr i8, ptr %pool, i64 {thread_pool.MEMBERS_OFFSET}
  %wanted.one = sext i32 %threads to i64
  %wanted = sub i64 %wanted.one, 1
  br label %head
head:
  %i = phi i64 [ 0, %fine ], [ %next, %started ]
  store atomic i64 %i, ptr %members seq_cst, align 8
  %more = icmp slt i64 %i, %wanted
  br i1 %more, label %start, label %done
start:
  %handle.offset = mul i64 %i, 8
  %handles = getelementptr i8, ptr %pool, i64 {_HANDLES}
  %handle = getelementptr i8, ptr %handles, i64 %handle.offset
  %told.offset = mul i64 %i, 16
  %all.told = getelementptr i8, ptr %pool, i64 {_TOLD}
  %told = getelementptr i8, ptr %all.told, i64 %told.offset
  store ptr %pool, ptr %told, align 8
  %member.at = getelementptr i8, ptr %told, i64 8
  store i64 %i, ptr %member.at, align 8
  %failed = call i32 @pthread_create(ptr %handle, ptr null, ptr @{name}_thread, ptr %told)
  %next = add i64 %i, 1
  %is.fine = icmp eq i32 %failed, 0
  br i1 %is.fine, label %started, label %unstarted
started:
  br label %head
unstarted:
  ret i32 {_STATUS["NO_THREADS"]}
done:
  ret i32 0
}}
define i32 @{name}_pool_stop(ptr %memory) {{
entry:
  %is.null = icmp eq ptr %memory, null
  br i1 %is.null, label %null, label %some
null:
  ret i32 {_STATUS["NULL_POINTER"]}
some:
{aligned("%memory", "pool")}
  %stop = getelementptr i8, ptr %pool, i64 {thread_pool.STOP_OFFSET}
  store atomic i64 1, ptr %stop seq_cst, align 8
  call void @{variant}_share(ptr %pool, ptr null, ptr null, ptr null, i64 0)
  %members.at = getelementptr i8, ptr %pool, i64 {thread_pool.MEMBERS_OFFSET}
  %members = load atomic i64, ptr %members.at seq_cst, align 8
  br label %head
head:
  %i = phi i64 [ 0, %some ], [ %next, %join ]
  %more = icmp slt i64 %i, %members
  br i1 %more, label %join, label %done
join:
  %offset = mul i64 %i, 8
  %handles = getelementptr i8, ptr %pool, i64 {_HANDLES}
  %handle.at = getelementptr i8, ptr %handles, i64 %offset
  %handle = load i64, ptr %handle.at, align 8
  %r0 = call i32 @pthread_join(i64 %handle, ptr null)
  %next = add i64 %i, 1
  br label %head
done:
  store atomic i64 0, ptr %members.at seq_cst, align 8
  %mutex = getelementptr i8, ptr %pool, i64 {thread_pool.MUTEX_OFFSET}
  %condition = getelementptr i8, ptr %pool, i64 {thread_pool.CONDITION_OFFSET}
  %r1 = call i32 @pthread_mutex_destroy(ptr %mutex)
  %r2 = call i32 @pthread_cond_destroy(ptr %condition)
  ret i32 0
}}"""


__all__ = ["LIBC", "MAX_THREADS", "aligned", "pool_functions"]
