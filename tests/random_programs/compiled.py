"""Random programs, compiled: each is a function of its first tensors, and is compared with the eager function.

    python -m tests.random_programs.compiled --programs 500
    python -m tests.random_programs.compiled --replay 1234

A program's leaves become arguments, the rest is the function's body; a statement that raises is caught, and its error
is a result. The function is called a few times, each time with other elements in new tensors. Compared are errors,
results, arguments after the call, aliasing, and the gradients of a backward outside. Every other program draws random
numbers; the state of the generator is compared, too.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import warnings
from collections.abc import Callable, Collection
from itertools import combinations
from typing import Any

import numpy as np

import flambeau as torch

from .comparison import Disagreement, differs
from .execution import _fail, _safe, plain
from .generation import written
from .observation import array_of
from .prelude import PRELUDE
from .shrinking import shortened

#: how often each program is called: twice to be captured, then replayed
CALLS = 4

_LEAF = re.compile(r"(x\d+) = torch\.tensor\(")
_NARROW = ("float32", "complex64", "float()", "half()", "torch.rand", "torch.empty", "torch.zeros(")


class _Modes:
    """The modes that a program has entered and not left."""

    def __init__(self) -> None:
        self.entered: list[Any] = []

    def enter(self, mode: Any) -> None:
        mode.__enter__()
        self.entered.append(mode)

    def leave(self) -> None:
        if self.entered:
            self.entered.pop().__exit__(None, None, None)

    def close(self) -> None:
        while self.entered:
            self.leave()


def parted(program: list[str]) -> tuple[dict[str, str], list[str]]:
    """The leaves that a program begins with, by name, and the other statements."""
    leaves: dict[str, str] = {}
    for at, text in enumerate(program):
        found = _LEAF.match(text)
        if found is None or not _runs(text):
            return leaves, [each for each in program[at:] if "look()" not in each and _is_python(each)]
        leaves[found[1]] = text
    return leaves, []


def _runs(text: str) -> bool:
    try:
        exec(text, {"torch": torch})
    except RuntimeError:
        return False
    return True


def _is_python(text: str) -> bool:
    try:
        compile(text, "<program>", "exec")
    except SyntaxError:  # which is an error, too, if it is of a program's own making
        return False
    return True


def source_of(leaves: dict[str, str], body: list[str], return_tensors: bool) -> str:
    """The program as a function of its leaves.

    Args:
        return_tensors: return the tensors with their histories, views and hooks; else their values.
    """
    lines = [f"def program({', '.join(leaves)}):", "    errors, modes = [], Modes()",
             "    enter, leave = modes.enter, modes.leave"]
    for number, text in enumerate(body):
        lines.append("    try:")
        lines += ["        " + line for line in text.split("\n")]
        lines += ["    except Exception as error:",
                  f"        errors.append(f'{number}: {{type(error).__name__}}: {{plain(error)}}')"]
    each = "each" if return_tensors else "each.detach().clone()"
    lines += ["    modes.close()",
              "    found = {name: each for name, each in locals().items() if isinstance(each, torch.Tensor)}",
              f"    return {{name: {each} for name, each in found.items()}}, errors"]
    return "\n".join(lines) + "\n"


def _space() -> dict[str, Any]:
    space: dict[str, Any] = {"torch": torch, "note": lambda *_: None, "__name__": "program", "safe": _safe,
                             "fail": _fail, "plain": plain, "Modes": _Modes}
    exec(compile(PRELUDE, "<prelude>", "exec"), space)
    return space


_SPACE = _space()


def made(leaves: dict[str, str], call: int) -> list[Any]:
    """The arguments of a call: the program's leaves, with other numbers each time."""
    space = {"torch": torch}
    rng = np.random.default_rng(call)
    found = []
    for name, text in leaves.items():
        exec(text, space)
        a = space[name]._array
        if a.dtype.kind in "fc":
            a *= (1 + 0.2 * rng.standard_normal(a.shape)).astype(a.dtype)
        found.append(space[name])
    return found


def _seen(x: Any, known: Collection[int] = ()) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grad = x._grad
    try:
        leaf: Any = x.is_leaf
    except RuntimeError as error:  # a view whose base was written to
        leaf = plain(error)
    return {"dtype": str(x.dtype), "shape": tuple(x.shape), "class": type(x).__name__, "value": array_of(x),
            "requires_grad": x.requires_grad, "inference": x.is_inference(), "leaf": leaf, "view": id(x._base) in known,
            "grad": None if grad is None else {"value": array_of(grad), "requires_grad": grad.requires_grad}}


def _related(tensors: dict[str, Any]) -> list[str]:
    """Which tensors share memory, are one, or count writes together."""
    found = []
    for (name, x), (other, y) in combinations(tensors.items(), 2):
        if x is y:
            found.append(f"{name} is {other}")
        elif np.may_share_memory(x._array, y._array):
            found.append(f"{name} shares memory with {other}")
    return found


def outcome(function: Callable[..., Any], leaves: dict[str, str], call: int) -> dict[str, Any]:
    """All that can be seen of one call, and of a backward pass after it."""
    arguments = made(leaves, call)
    torch.manual_seed(call)
    try:
        results, errors = function(*arguments)
    except Exception as error:
        return {"raised": f"{type(error).__name__}: {plain(error)}"}
    given = {f"argument {name}": x for name, x in zip(leaves, arguments, strict=True)}
    found: dict[str, Any] = {"errors": errors, "names": sorted(results),
                             "stream": torch.get_rng_state().numpy().tobytes().hex()[:40] + str(torch.rand(3))}
    known = {id(x) for x in (*arguments, *results.values())}
    found["arguments"] = {name: {**_seen(x, known), "version": None if x.is_inference() else x._version}
                          for name, x in given.items()}
    found["results"] = {name: _seen(x, known) for name, x in results.items()}
    found["memory"] = _related({**given, **results})
    differentiable = [x for x in results.values() if x.requires_grad and x.is_floating_point() and x.numel()]
    if differentiable:
        try:
            sum((x * (k + 1)).sum().double() for k, x in enumerate(differentiable)).backward()
            found["backward"] = "done"
        except Exception:  # which of several comes first is not said
            found["backward"] = "an error"
    if found.get("backward", "done") == "done":  # what an error comes before is not said
        found["gradients"] = {name: _seen(x)["grad"] for name, x in {**given, **results}.items()}
    return found


def replays(compiled: Any) -> int:
    """How many programs a compiled function has."""
    return sum(len(kind.entries) for kind in compiled._signatures.values())


def disagreement(program: list[str]) -> tuple[Disagreement | None, int]:
    """Where a program does not do the same compiled, and how many compiled programs it was."""
    count = 0
    for return_tensors in (True, False):
        found, programs = _compared(program, return_tensors)
        if found is not None:
            return found, 0
        count += programs
    return None, count


def _compared(program: list[str], return_tensors: bool) -> tuple[Disagreement | None, int]:
    leaves, body = parted(program)
    space = dict(_SPACE)
    exec(compile(source_of(leaves, body, return_tensors), "<program>", "exec"), space)
    function = space["program"]
    compiled = torch.compile(function)
    tolerance = 1e-8
    for text in program:
        if "half()" in text:
            tolerance = 2e-2
        elif any(word in text for word in _NARROW):
            tolerance = max(tolerance, 3e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in range(CALLS):
            there, here = (outcome(each, leaves, call) for each in (function, compiled))
            found = differs(here, there, "", tolerance)
            if found is not None:
                where = f"call {call}" if return_tensors else f"call {call}, values alone"
                return Disagreement(len(program) - 1, where, *found, sides=("compiled", "eager")), 0
    return None, replays(compiled)


def checked(seed: int) -> tuple[list[str], Disagreement | None, int]:
    """The program of a seed, where it does not do the same compiled, and how many compiled programs it was."""
    program, _ = written(seed, torch, draws=seed % 2 == 1, wide=False)
    return program, *disagreement(program)


def explained(seed: int, program: list[str], found: Disagreement, shorten: bool = True) -> str:
    """What to print of a disagreement: the program, as short as it can be, and both sides."""
    said = f"seed {seed}: {found}"
    if shorten:
        program, found = shortened(program, found, lambda shorter: disagreement(shorter)[0])
        said = f"seed {seed}, shortened:\n" + "\n".join("    " + line for text in program for line in text.split("\n"))
        said += f"\n  {found}"
    return said + f"\n  again: python -m tests.random_programs.compiled --replay {seed}\n"


def main() -> int:
    """Run programs; the exit status says whether all did the same compiled."""
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs.compiled")
    parser.add_argument("--programs", type=int, default=500, help="how many (default 500)")
    parser.add_argument("--seed", type=int, default=0, help="the first program's seed (default 0)")
    parser.add_argument("--replay", type=int, metavar="SEED", help="run the program of one seed")
    parser.add_argument("--show", action="store_true", help="print every program")
    parser.add_argument("--most", type=int, default=10, help="stop after so many disagreements (default 10)")
    parser.add_argument("--whole", action="store_true", help="do not shorten the programs that disagree")
    given = parser.parse_args()
    seeds = [given.replay] if given.replay is not None else range(given.seed, given.seed + given.programs)
    failed, began, done, count = [], time.perf_counter(), 0, 0
    for seed in seeds:
        program, found, programs = checked(seed)
        done, count = done + 1, count + bool(programs)
        if given.show:
            print(f"# seed {seed}\n" + "\n".join(program) + "\n")
        if found is not None:
            failed.append(seed)
            print(explained(seed, program, found, shorten=not given.whole), flush=True)
            if len(failed) >= given.most:
                break
    print(f"{done} programs, {count} of them compiled, {len(failed)} disagreements, "
          f"{time.perf_counter() - began:.0f} s" + (f"; seeds {failed}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
