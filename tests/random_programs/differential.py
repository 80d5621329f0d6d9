"""The check of one program: generated under PyTorch, run under flambeau, compared, and explained."""

from __future__ import annotations

from functools import cache
from types import ModuleType

from .comparison import Disagreement, compare
from .execution import run
from .generation import written
from .shrinking import decided, shrunk


@cache
def libraries() -> tuple[ModuleType, ModuleType]:
    """flambeau and PyTorch, set to give every warning every time."""
    import torch

    import flambeau

    torch.set_num_threads(1)
    for library in (flambeau, torch):
        library.set_warn_always(True)
    return flambeau, torch


def checked(seed: int, mixed: bool = False) -> tuple[list[str], Disagreement | None]:
    """The program of a seed, and where the libraries disagree about it.

    Args:
        mixed: whether it has the statements of `mixed_statements`.
    """
    here, there = libraries()
    program, steps = written(seed, there, mixed=mixed)
    return program, decided(program, compare(run(program, here), steps), steps, here, there)


def explained(seed: int, program: list[str], found: Disagreement, shorten: bool = True,
              command: str = "tests.random_programs") -> str:
    """What to print of a disagreement: the program, as short as it can be, both sides, and how to run it again."""
    said = f"seed {seed}: {found}"
    if shorten:
        program, found = shrunk(program, found, *libraries())
        said = f"seed {seed}, shortened:\n" + "\n".join("    " + line for text in program for line in text.split("\n"))
        said += f"\n  {found}"
    return said + f"\n  again: python -m {command} --replay {seed}\n"
