"""Debug output of programs: the graph, its kernels and where their code came from (`FLAMBEAU_DEBUG=ir,kernels`).

The text is deterministic for a program, except for compilation times.
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

#: a function from a schedule's kernel to the lines of the user's program that it comes from
SourceLines = Callable[[Schedule, Kernel], list[str]]


def _no_source_lines(schedule: Schedule, kernel: Kernel) -> list[str]:
    del schedule, kernel
    return []


def report(program: Program, title: str, since: int, names: Mapping[Value, str] | None = None,
           lines: SourceLines = _no_source_lines) -> None:
    """Print the sections that `FLAMBEAU_DEBUG` requests for a new program.

    Args:
        title: the heading.
        since: the number of code libraries before this program (`runtime.compilation.library_count`).
        names: the names of inputs.
        lines: the source lines of a kernel.
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
    """The kernels of a program: statements, operands, numbers of chunks, and where their code came from."""
    schedule = program.schedule
    text = [f"{title}: {pluralize(len(schedule.kernels), 'kernel')}, {schedule.arena:,} bytes of intermediate buffers"]
    reported: set[int] = set()
    for number, kernel in enumerate(schedule.kernels):
        if number == schedule.kernels_before_conditions:
            text += [f"  {line}" for line in printing.conditions(schedule, names)]
        outputs, inputs = printing.operands(schedule, kernel, names)
        text.append(f"  kernel {number}: {printing.kernel_title(kernel)}")
        text += [f"    {line}" for line in printing.statements(kernel, names)]
        text.append(f"    writes {', '.join(outputs)}")
        if inputs:
            text.append(f"    reads {', '.join(inputs)}")
        if kernel.launches:
            chunks = " + ".join(map(str, printing.chunk_counts(kernel)))
            text.append(f"    {chunks} chunk{'s' * (chunks != '1')}; code {_code_origin(kernel, since, reported)}")
        else:
            text.append("    run by the interpreter")
        text += [f"    from {line}" for line in lines(schedule, kernel)]
    if schedule.kernels_before_conditions >= len(schedule.kernels):
        text += [f"  {line}" for line in printing.conditions(schedule, names)]
    text += [f"  at the end {printing.name_of(graph_input, names)} = {printing.name_of(value, names)}"
              for graph_input, value in schedule.deferred_copies]
    return "\n".join(text)


def pluralize(number: int, thing: str) -> str:
    """A number with its noun: `1 kernel`, `3 kernels`.

    >>> pluralize(1, "kernel"), pluralize(3, "kernel")
    ('1 kernel', '3 kernels')
    """
    return f"{number} {thing}{'s' * (number != 1)}"


def _code_origin(kernel: Kernel, since: int, reported: set[int]) -> str:
    libraries: dict[int, Library] = {each.library.number: each.library for each in kernel.launches}
    origins: list[str] = []
    for number, library in libraries.items():
        library.prepare()
        if number < since or number in reported:
            origins.append("in memory")
        elif library.origin == "disk":
            origins.append("from disk")
        else:
            origins.append(f"compiled in {library.seconds * 1e3:.0f} ms")
        reported.add(number)
    return ", ".join(dict.fromkeys(origins))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


__all__ = ["SourceLines", "describe_kernels", "pluralize", "report"]
