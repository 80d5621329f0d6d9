"""The schedule of a program as LLVM IR: functions that call kernels in order, and the tables that they read.

Plans of several sizes mostly call the same kernels on the same memory, and differ in numbers: chunks, offsets, words of
kernels' plans. Such plans share a function; each has a table of its numbers. A plan for many sizes has numbers that are
expressions of them: its table is made at the beginning of a run, in front of the arena. A module exports two hidden
functions:

    i64 NAME_arena(ptr sizes)            the bytes of the arena for these sizes, or -1
    i64 NAME_run(ptr bases, ptr sizes)   0, or the number, from 1 on, of the data guard that does not hold; -1

`bases` has the addresses of inputs, outputs, state, weights, arena and, in a program of several threads, the pool, in
this order. Such a module also exports `NAME_work` and `NAME_share`, the pool's functions (`runtime.thread_pool`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...ir.schedule.steps import ExecutionPlan, Step
from ...runtime.compilation import Library, Symbol, Word
from ...runtime.launch import ALIGNMENT, Condition, Launch
from ...runtime.symbolic_integers import SymbolicInteger
from ...runtime.thread_pool import CALLER_ONLY
from .kernel_objects import symbol_name
from .sizes.expressions import arena_function, fill_function

#: (index of a base, or CONSTANTS; offset in bytes)
Place = tuple[int, int]
#: stand for the base of constants of plans, which are in the module, and of weights that were packed ahead of time
CONSTANTS, PACKED = -1, -2


class SizedPlan(NamedTuple):
    """The plan for some sizes.

    Attributes:
        sizes: the combinations of dynamic sizes that it serves.
        plan: the execution plan; its numbers may be symbolic integers.
        bases: by table entry of the plan, but for its constants, the base and offset that it stands for.
        guards: by data guard of the plan, its number among the program's guards.
    """

    sizes: list[tuple[int, ...]]
    plan: ExecutionPlan
    bases: dict[int, Place]
    guards: list[int]


class _Table:
    """The numbers of one plan, and the structure that they fill."""

    def __init__(self) -> None:
        self.words: list[Any] = []
        self.structure: list[tuple] = []

    def append(self, words: Sequence[Any]) -> int:
        start = len(self.words)
        self.words += words
        return start

    @property
    def bytes(self) -> int:
        """The bytes in front of the arena in which the table is made; 0 where it depends on no size."""
        if not any(isinstance(word, SymbolicInteger) for word in self.words):
            return 0
        return -(-8 * len(self.words) // ALIGNMENT) * ALIGNMENT


def arena_bytes(sized: SizedPlan, sizes: tuple[int, ...]) -> int:
    """The bytes of a plan's intermediate values for one of its combinations of sizes."""
    arena: Any = sized.plan.arena
    if not isinstance(arena, SymbolicInteger):
        return int(arena)
    columns = np.stack(arena.sizes.columns)
    place = np.nonzero((columns == np.array(sizes)[:, None]).all(0))[0][0]
    return int(arena.values[place])


def table_bytes(sized: SizedPlan) -> int:
    """The bytes that a plan's table takes at most in front of the arena."""
    words = 0
    for step in sized.plan.steps:
        assert isinstance(step, Step)
        words += 1 + len(step.pointers) + (len(step.launch.words) if isinstance(step.launch, Launch) else 0)
    return 8 * words


def program_module(
    name: str, plans: Sequence[SizedPlan], bases: int, pointer_bytes: int, pool: Library | None = None
) -> str:
    """The module of a program.

    Args:
        name: the prefix of its symbols.
        plans: for all sizes.
        bases: the number of bases, without the pool.
        pointer_bytes: of the target.
        pool: the pool's code; None in a program of one thread.
    """
    constants = _Constants(name)
    tables = [_table(each, constants) for each in plans]
    structures: dict[tuple, int] = {}
    numbers = [structures.setdefault(tuple(table.structure), len(structures)) for table in tables]
    used = {word for table in tables for word in table.words if isinstance(word, Symbol)}
    used |= {
        step[key] for table in tables for step in table.structure if step[0] == "launch" for key in (1, 2) if step[key]
    }
    lines = [f'declare hidden void @"{each}"(ptr, ptr, i64)' for each in sorted({symbol_name(s) for s in used})]
    lines += [constants.text()]
    if any(base == PACKED for each in plans for base, _ in each.bases.values()):
        lines += [f"@{name}_packed = external hidden constant i8"]
    if pool is not None:
        lines += _pool_functions(name, pool)
    for structure, number in structures.items():
        lines += _run_function(name, number, structure, bases, pool is not None)
    for i, table in enumerate(tables):
        lines.append(f"@{name}_table_{i} = internal constant {_packed(table.words, pointer_bytes)}, align 64")
        lines += arena_function(f"{name}_arena_{i}", plans[i].plan.arena, table.bytes)
        if table.bytes:
            lines += fill_function(f"{name}_fill_{i}", f"{name}_table_{i}", table.words)
    lines.append("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
    lines += _lookup(name, plans, numbers, tables, bases - 1)
    return "\n".join(lines) + "\n"


class _Constants:
    """The constants of plans, each distinct array once."""

    def __init__(self, name: str) -> None:
        self.name = f"{name}_constants"
        self._data = bytearray()
        self._known: dict[bytes, int] = {}

    def place(self, bits: bytes) -> int:
        """The offset of these bytes."""
        if bits not in self._known:
            self._data += bytes(-len(self._data) % 64)
            self._known[bits] = len(self._data)
            self._data += bits
        return self._known[bits]

    def text(self) -> str:
        """The array's definition."""
        return (
            f"@{self.name} = internal constant [{len(self._data)} x i8] "
            f'c"{"".join(f"{chr(92)}{byte:02X}" for byte in self._data)}", align 64'
        )


def _table(sized: SizedPlan, constants: _Constants) -> _Table:
    table, guards = _Table(), iter(sized.guards)
    offsets = {}
    for k, array in enumerate(sized.plan.constants):
        offsets[sized.plan.arena_entry + 1 + k] = constants.place(array.tobytes())
    for step in sized.plan.steps:
        assert isinstance(step, Step)
        places = []
        for entry, offset in step.pointers:
            base, start = (CONSTANTS, offsets[entry]) if entry in offsets else sized.bases[entry]
            places.append((base, start + offset))
        bases = tuple(base for base, _ in places)
        if isinstance(step.launch, Condition):
            table.append([int(step.launch.outcome), *(offset for _, offset in places)])
            table.structure.append(("guard", bases, next(guards)))
            continue
        launch = step.launch
        chunks = launch.chunks % CALLER_ONLY
        table.append([chunks, *(offset for _, offset in places), *launch.words])
        symbols = tuple((i, word) for i, word in enumerate(launch.words) if isinstance(word, Symbol))
        assert isinstance(launch.body, Symbol)
        table.structure.append(("launch", launch.body, launch.then, bases, len(launch.words), symbols, launch.shared))
    return table


def _packed(words: Sequence[Word], pointer_bytes: int) -> str:
    """A packed structure of 64-bit words, some of which are addresses."""
    types, values = [], []
    for word in words:
        if not isinstance(word, Symbol):
            types.append("i64")
            values.append(f"i64 {0 if isinstance(word, SymbolicInteger) else word}")
        else:
            types.append("ptr")
            values.append(f'ptr @"{symbol_name(word)}"')
            if pointer_bytes == 4:  # little-endian: the high half follows
                types.append("i32")
                values.append("i32 0")
    return f"<{{ {', '.join(types)} }}> <{{ {', '.join(values)} }}>"


def _pool_functions(name: str, pool: Library) -> Iterator[str]:
    for function, export, arguments in (("work", "work", ("ptr", "i64")), ("run", "share", ("ptr",) * 4 + ("i64",))):
        symbol = symbol_name(pool.symbol(function))
        named = ", ".join(f"{type_} %{i}" for i, type_ in enumerate(arguments))
        yield f'declare hidden void @"{symbol}"({", ".join(arguments)})'
        yield f"define hidden void @{name}_{export}({named}) {{"
        yield f'  call void @"{symbol}"({named})\n  ret void\n}}'


def _run_function(
    program: str, number: int, structure: tuple, bases: int, has_pool: bool
) -> Iterator[str]:
    name = f"{program}_run_{number}"
    most = max((len(step[3] if step[0] == "launch" else step[1]) for step in structure), default=1)
    yield f"define internal i64 @{name}(ptr %bases, ptr %table) {{\nentry:"
    yield f"  %pointers = alloca [{max(most, 1)} x ptr], align 16"
    for i in range(bases):
        yield f"  %base.at.{i} = getelementptr ptr, ptr %bases, i64 {i}\n  %base.{i} = load ptr, ptr %base.at.{i}"
    if has_pool:
        yield f"  %pool.at = getelementptr ptr, ptr %bases, i64 {bases}\n  %pool = load ptr, ptr %pool.at"
        yield "  %is.alone = icmp eq ptr %pool, null"
    yield "  br label %step0"
    at = 0
    for s, step in enumerate(structure):
        yield f"step{s}:"
        yield f"  %t{s}.at = getelementptr i64, ptr %table, i64 {at}\n  %t{s} = load i64, ptr %t{s}.at, align 8"
        at += 1
        if step[0] == "guard":
            (base,) = step[1]
            yield from _address(program, f"g{s}", base, at)
            at += 1
            yield f"  %bool{s} = load i8, ptr %g{s}, align 1\n  %want{s} = trunc i64 %t{s} to i8"
            yield f"  %holds{s} = icmp eq i8 %bool{s}, %want{s}"
            yield f"  br i1 %holds{s}, label %step{s + 1}, label %stop{s}\nstop{s}:\n  ret i64 {step[2] + 1}"
            continue
        _, body, then, places, words, _, shared = step
        for k, base in enumerate(places):
            yield from _address(program, f"p{s}.{k}", base, at)
            at += 1
            yield f"  %slot{s}.{k} = getelementptr ptr, ptr %pointers, i64 {k}\n  store ptr %p{s}.{k}, ptr %slot{s}.{k}"
        yield f"  %plan{s} = getelementptr i64, ptr %table, i64 {at}"
        at += words
        before = f"step{s}"
        if has_pool and shared:
            before = f"alone{s}"
            yield f"  br i1 %is.alone, label %alone{s}, label %share{s}\nshare{s}:"
            yield (
                f'  call void @{program}_share(ptr %pool, ptr @"{symbol_name(body)}", ptr %pointers, ptr %plan{s}, '
                f"i64 %t{s})\n  br label %after{s}\nalone{s}:"
            )
        yield f"  br label %head{s}\nhead{s}:"
        yield f"  %i{s} = phi i64 [ 0, %{before} ], [ %next{s}, %chunk{s} ]"
        yield f"  %more{s} = icmp slt i64 %i{s}, %t{s}\n  br i1 %more{s}, label %chunk{s}, label %after{s}"
        yield f'chunk{s}:\n  call void @"{symbol_name(body)}"(ptr %pointers, ptr %plan{s}, i64 %i{s})'
        yield f"  %next{s} = add i64 %i{s}, 1\n  br label %head{s}\nafter{s}:"
        if then:
            yield f'  call void @"{symbol_name(then)}"(ptr %pointers, ptr %plan{s}, i64 0)'
        yield f"  br label %step{s + 1}"
    yield f"step{len(structure)}:\n  ret i64 0\n}}"


def _address(program: str, name: str, base: int, at: int) -> Iterator[str]:
    data = {CONSTANTS: f"@{program}_constants", PACKED: f"@{program}_packed"}
    pointer = data.get(base) or f"%base.{base}"
    yield f"  %{name}.at = getelementptr i64, ptr %table, i64 {at}"
    yield f"  %{name}.offset = load i64, ptr %{name}.at, align 8"
    yield f"  %{name} = getelementptr i8, ptr {pointer}, i64 %{name}.offset"


def _lookup(
    name: str, plans: Sequence[SizedPlan], numbers: Sequence[int], tables: Sequence[_Table], arena: int
) -> Iterator[str]:
    """The exported functions, and the search of a plan by its sizes."""
    rank, count = len(plans[0].sizes[0]), len(plans)
    served = sorted((sizes, i) for i, each in enumerate(plans) for sizes in each.sizes)
    rows = ", ".join(f"i64 {size}" for sizes, _ in served for size in sizes) or "i64 0"
    yield f"@{name}_sizes = internal constant [{max(1, len(served) * rank)} x i64] [{rows}]"
    yield f"@{name}_plans = internal constant [{len(served)} x i16] [{', '.join(f'i16 {i}' for _, i in served)}]"
    yield f"@{name}_before = internal constant [{count} x i64] [{', '.join(f'i64 {each.bytes}' for each in tables)}]"
    for kind, pointers in (
        ("tables", [f"{name}_table_{i}" for i in range(count)]),
        ("functions", [f"{name}_run_{number}" for number in numbers]),
        ("arenas", [f"{name}_arena_{i}" for i in range(count)]),
        ("fills", [f"{name}_fill_{i}" if table.bytes else None for i, table in enumerate(tables)]),
    ):
        listed = ", ".join("ptr null" if each is None else f"ptr @{each}" for each in pointers)
        yield f"@{name}_{kind} = internal constant [{count} x ptr] [{listed}]"
    yield from _find(name, [sizes for sizes, _ in served], rank)
    yield f"""define hidden i64 @{name}_arena(ptr %sizes) {{
  %i = call i64 @{name}_find(ptr %sizes)
  %none = icmp slt i64 %i, 0
  br i1 %none, label %fail, label %ok
fail:
  ret i64 -1
ok:
  %at = getelementptr ptr, ptr @{name}_arenas, i64 %i
  %function = load ptr, ptr %at
  %bytes = call i64 %function(ptr %sizes)
  ret i64 %bytes
}}
define hidden i64 @{name}_run(ptr %bases, ptr %sizes) {{
  %i = call i64 @{name}_find(ptr %sizes)
  %none = icmp slt i64 %i, 0
  br i1 %none, label %fail, label %ok
fail:
  ret i64 -1
ok:
  %table.at = getelementptr ptr, ptr @{name}_tables, i64 %i
  %table.constant = load ptr, ptr %table.at
  %function.at = getelementptr ptr, ptr @{name}_functions, i64 %i
  %function = load ptr, ptr %function.at
  %fill.at = getelementptr ptr, ptr @{name}_fills, i64 %i
  %fill = load ptr, ptr %fill.at
  %is.constant = icmp eq ptr %fill, null
  br i1 %is.constant, label %start, label %make
make:
  %arena.at = getelementptr ptr, ptr %bases, i64 {arena}
  %arena = load ptr, ptr %arena.at
  call void %fill(ptr %sizes, ptr %arena)
  %before.at = getelementptr i64, ptr @{name}_before, i64 %i
  %before = load i64, ptr %before.at
  %behind = getelementptr i8, ptr %arena, i64 %before
  store ptr %behind, ptr %arena.at
  br label %start
start:
  %table = phi ptr [ %table.constant, %ok ], [ %arena, %make ]
  %result = call i64 %function(ptr %bases, ptr %table)
  ret i64 %result
}}"""


def _find(name: str, served: Sequence[tuple[int, ...]], rank: int) -> Iterator[str]:
    """The search of a plan: by subtraction where one size has consecutive values, else through the rows."""
    count = len(served)
    first = served[0][0] if rank else 0
    yield f"define internal i64 @{name}_find(ptr %sizes) {{\nentry:"
    if rank == 1 and [n for (n,) in served] == list(range(first, first + count)):
        yield f"  %size = load i64, ptr %sizes, align 8\n  %i = sub i64 %size, {first}"
        yield f"  %known = icmp ult i64 %i, {count}\n  br i1 %known, label %found, label %none"
    else:
        for d in range(rank):
            yield f"  %at.{d} = getelementptr i64, ptr %sizes, i64 {d}\n  %size.{d} = load i64, ptr %at.{d}, align 8"
        yield "  br label %head\nhead:\n  %i = phi i64 [ 0, %entry ], [ %next, %differ ]"
        yield f"  %more = icmp slt i64 %i, {count}\n  br i1 %more, label %look, label %none\nlook:"
        yield f"  %row = mul i64 %i, {rank}\n  %all.0 = icmp eq i64 0, 0"
        for d in range(rank):
            yield f"  %k.{d} = add i64 %row, {d}\n  %known.at.{d} = getelementptr i64, ptr @{name}_sizes, i64 %k.{d}"
            yield f"  %known.{d} = load i64, ptr %known.at.{d}\n  %same.{d} = icmp eq i64 %known.{d}, %size.{d}"
            yield f"  %all.{d + 1} = and i1 %all.{d}, %same.{d}"
        yield f"  br i1 %all.{rank}, label %found, label %differ\ndiffer:\n  %next = add i64 %i, 1\n  br label %head"
    yield f"found:\n  %plan.at = getelementptr i16, ptr @{name}_plans, i64 %i\n  %plan = load i16, ptr %plan.at"
    yield "  %wide = zext i16 %plan to i64\n  ret i64 %wide\nnone:\n  ret i64 -1\n}"


__all__ = ["CONSTANTS", "PACKED", "Place", "SizedPlan", "arena_bytes", "program_module", "table_bytes"]
