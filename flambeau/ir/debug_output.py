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
from .schedule.scheduler import Plan

#: which lines of the user's program a plan's kernel comes from
Lines = Callable[[Plan, Kernel], list[str]]


def _no_lines(plan: Plan, kernel: Kernel) -> list[str]:
    del plan, kernel
    return []


def report(program: Program, title: str, since: int, names: Mapping[Value, str] | None = None,
           lines: Lines = _no_lines) -> None:
    """Print what `FLAMBEAU_DEBUG` asks for of a program that was just made.

    Args:
        title: what it is called.
        since: how many libraries of code there were before it (`runtime.compilation.count`).
        names: of leaves.
        lines: what says which lines of the user's program a kernel comes from.
    """
    names = names or {}
    if debug_output.wanted("ir"):
        plan = program.plan
        debug_output.show(f"{title}, as captured\n{_indented(printing.graph(plan.graph, names, plan.captured))}")
        debug_output.show(f"{title}, in kernels\n{_indented(printing.clusters(plan, names))}")
    if debug_output.wanted("kernels"):
        debug_output.show(kernels(program, title, since, names, lines))


def kernels(program: Program, title: str, since: int, names: Mapping[Value, str], lines: Lines = _no_lines) -> str:
    """A program's kernels: what each computes from what, in how many chunks, and where its code came from."""
    plan = program.plan
    found = [f"{title}: {counted(len(plan.kernels), 'kernel')}, {plan.arena:,} bytes of memory of its own"]
    seen: set[int] = set()
    for number, kernel in enumerate(plan.kernels):
        if number == plan.early:
            found += [f"  {line}" for line in printing.conditions(plan, names)]
        outs, ins = printing.operands(plan, kernel, names)
        found.append(f"  kernel {number}: {printing.title(kernel)}")
        found += [f"    {line}" for line in printing.statements(kernel, names)]
        found.append(f"    writes {', '.join(outs)}")
        if ins:
            found.append(f"    reads {', '.join(ins)}")
        if kernel.launches:
            shares = " + ".join(map(str, printing.chunks(kernel)))
            found.append(f"    {shares} chunk{'s' * (shares != '1')}; code {_provenance(kernel, since, seen)}")
        else:
            found.append("    run by the interpreter")
        found += [f"    from {line}" for line in lines(plan, kernel)]
    if plan.early >= len(plan.kernels):
        found += [f"  {line}" for line in printing.conditions(plan, names)]
    found += [f"  at the end {printing.name_of(leaf, names)} = {printing.name_of(value, names)}"
              for leaf, value in plan.late]
    return "\n".join(found)


def counted(number: int, thing: str) -> str:
    """A number of things: `1 kernel`, `3 kernels`.

    >>> counted(1, "kernel"), counted(3, "kernel")
    ('1 kernel', '3 kernels')
    """
    return f"{number} {thing}{'s' * (number != 1)}"


def _provenance(kernel: Kernel, since: int, seen: set[int]) -> str:
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


__all__ = ["Lines", "counted", "kernels", "report"]
