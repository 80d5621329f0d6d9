"""What `FLAMBEAU_DEBUG=ir,kernels` shows of a program: its graph, how that became kernels, where their code is from.

A report's text is the same for the same program, times of compilation apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..runtime import debug_output
from ..runtime.compilation import Library
from . import printing
from .graph.value import Value
from .kernels.pointwise import Kernel
from .schedule.program import Program
from .schedule.scheduler import Schedule

#: which lines of the user's program a schedule's kernel comes from
SourceLines = Callable[[Schedule, Kernel], list[str]]


def _no_source_lines(schedule: Schedule, kernel: Kernel) -> list[str]:
    del schedule, kernel
    return []


def report(program: Program, title: str, since: int, names: Mapping[Value, str] | None = None,
           lines: SourceLines = _no_source_lines) -> None:
    """Print what `FLAMBEAU_DEBUG` asks for of a program that was just made.

    Args:
        title: what it is called.
        since: how many libraries of code there were before it (`runtime.compilation.library_count`).
        names: of leaves.
        lines: what says which lines of the user's program a kernel comes from.
    """
    names = names or {}
    if debug_output.is_enabled("ir"):
        schedule = program.schedule
        listing = printing.graph_listing(schedule.graph, names, schedule.captured)
        debug_output.show(f"{title}, as captured\n{_indented(listing)}")
        debug_output.show(f"{title}, in kernels\n{_indented(printing.kernel_listing(schedule, names))}")
    if debug_output.is_enabled("kernels"):
        debug_output.show(describe_kernels(program, title, since, names, lines))


def describe_kernels(program: Program, title: str, since: int, names: Mapping[Value, str],
                     lines: SourceLines = _no_source_lines) -> str:
    """A program's kernels: what each computes from what, in how many chunks, and where its code came from."""
    schedule = program.schedule
    found = [f"{title}: {pluralize(len(schedule.kernels), 'kernel')}, {schedule.arena:,} bytes of memory of its own"]
    seen: set[int] = set()
    for number, kernel in enumerate(schedule.kernels):
        if number == schedule.kernels_before_conditions:
            found += [f"  {line}" for line in printing.conditions(schedule, names)]
        outs, ins = printing.operands(schedule, kernel, names)
        found.append(f"  kernel {number}: {printing.kernel_title(kernel)}")
        found += [f"    {line}" for line in printing.statements(kernel, names)]
        found.append(f"    writes {', '.join(outs)}")
        if ins:
            found.append(f"    reads {', '.join(ins)}")
        if kernel.launches:
            shares = " + ".join(map(str, printing.chunk_counts(kernel)))
            found.append(f"    {shares} chunk{'s' * (shares != '1')}; code {_code_origin(kernel, since, seen)}")
        else:
            found.append("    run by the interpreter")
        found += [f"    from {line}" for line in lines(schedule, kernel)]
    if schedule.kernels_before_conditions >= len(schedule.kernels):
        found += [f"  {line}" for line in printing.conditions(schedule, names)]
    found += [f"  at the end {printing.name_of(graph_input, names)} = {printing.name_of(value, names)}"
              for graph_input, value in schedule.deferred_copies]
    return "\n".join(found)


def pluralize(number: int, thing: str) -> str:
    """A number of things: `1 kernel`, `3 kernels`.

    >>> pluralize(1, "kernel"), pluralize(3, "kernel")
    ('1 kernel', '3 kernels')
    """
    return f"{number} {thing}{'s' * (number != 1)}"


def _code_origin(kernel: Kernel, since: int, seen: set[int]) -> str:
    libraries: dict[int, Library] = {each.library.number: each.library for each in kernel.launches}
    told: list[str] = []
    for number, library in libraries.items():
        library.prepare()
        if number < since or number in seen:
            told.append("in memory")
        elif library.origin == "disk":
            told.append("from disk")
        else:
            told.append(f"compiled in {library.seconds * 1e3:.0f} ms")
        seen.add(number)
    return ", ".join(dict.fromkeys(told))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


__all__ = ["SourceLines", "describe_kernels", "pluralize", "report"]
