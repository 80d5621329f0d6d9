"""Calls of public functions and methods of which one argument is of another class than it should be.

    python -m tests.random_programs.wrong_calls --programs 2000
    python -m tests.random_programs.wrong_calls --names 'nn.functional.*' --once --most 100
    python -m tests.random_programs.wrong_calls --replay 1234

A call that PyTorch accepts is one of the samples of PyTorch's table of operators, or made by schema for names without
samples. One change makes it wrong, or leaves it right in another way: a float for an int, a NumPy scalar, a 0-d tensor,
a number for a tuple, a missing argument, an unknown keyword. Both libraries accept the call, with equal results, or
both raise the same exception with the same words.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import functools
import random
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .calls import Caller, is_pythons, joined, schemas
from .comparison import Disagreement, compare
from .differential import explained, libraries
from .execution import run
from .shrinking import decided

#: names that every program has
SETUP = '''
import enum
import numpy as np
inf, nan = float("inf"), float("nan")
class Index:
    def __index__(self):
        return 1
class Number(enum.IntEnum):
    ONE = 1
class Float(float):
    pass
'''
#: arguments of other classes
_OTHERS = (
    "1.5", "2.", "1", "0", "True", "None", "'a'", "(1,)", "[1., 2]", "(1.5,)", "[None]", "[True]", "()", "(1, 'a')",
    "np.int64(1)", "np.float32(1.5)", "np.float64(1.)", "np.bool_(True)", "np.array(1)", "np.array([1, 2])",
    "torch.tensor(1)", "torch.tensor(1.5)", "torch.tensor(True)", "torch.tensor([1])", "[torch.tensor(1)]",
    "torch.Size([1])", "torch.float32", "{}", "object()", "Index()", "Number.ONE", "Float(1.5)", "1j", "2**70", "-1",
    "[1, torch.tensor(1)]", "[np.int64(1)]", "[Index()]", "range(1, 3)", "b'x'", "torch.ones(2)", "slice(1)",
)
#: the argument itself as an object of another class
_CONVERTED = ("[{}]", "({},)", "float({})", "np.float64({})", "np.int64({})", "torch.tensor({})", "bool({})", "str({})",
              "list({})", "tuple({})", "torch.Size({})", "np.array({})")
_KEYWORDS = ("wrong=1", "out=None", "dim=0", "input=1", "dtype=None", "keepdim=1", "axis=0", "other=2", "self=1")
#: operators of PyTorch's table that are not called: their results depend on the machine or on memory
_LEFT_OUT = ("empty*", "new_empty*", "_*", "jiterator*", "to_sparse", "sparse.*", "ops.*", "nn.functional.ctc_loss",
             "torch.*", "*multi_head_attention*", "svd_lowrank", "pca_lowrank", "linalg.lstsq", "lu*", "linalg.ldl*")


@dataclass
class Call:
    """A call as text: `how` is `torch.{name}`, or `.{name}` for a method, whose tensor is the first argument."""

    how: str
    positional: list[str]
    named: list[str]
    lines: list[str]

    def __str__(self) -> str:
        return joined(self.how, self.positional, self.named)


@functools.cache
def _operators() -> dict[str, list[Any]]:
    """The entries of PyTorch's table by public name."""
    from torch.testing._internal.common_methods_invocations import op_db

    found: dict[str, list[Any]] = {}
    for op in op_db:
        if not any(fnmatch.fnmatchcase(op.name, pattern) for pattern in _LEFT_OUT):
            found.setdefault(op.name, []).append(op)
    return found


@functools.cache
def names() -> list[str]:
    """All names that are called."""
    return sorted({*_operators(), *schemas()})


def _text(value: Any) -> str:
    """An expression for an argument of a sample.

    Raises:
        ValueError: it has none that is short.
    """
    import torch

    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.numel() > 128 or value.is_quantized:
            raise ValueError("no short text")
        made = f"torch.tensor({value.tolist()}, dtype={value.dtype})"
        return made if value.numel() else f"torch.zeros({tuple(value.shape)}, dtype={value.dtype})"
    if isinstance(value, torch.Size):
        return f"torch.Size({list(value)})"
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        inside = ", ".join(map(_text, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"
    if value is None or isinstance(value, (bool, int, float, complex, str, torch.dtype)):
        return repr(value)
    if isinstance(value, torch.device):
        return repr(str(value))
    raise ValueError("no short text")


@functools.cache
def _samples(name: str) -> list[tuple[list[str], list[str]]]:
    """The arguments, by position and by name, of an operator's samples."""
    import torch

    found = []
    for op in _operators().get(name, ()):
        dtype = next((d for d in (torch.float32, torch.int64, torch.bool, torch.complex64) if d in op.dtypes), None)
        if dtype is None:
            continue
        torch.manual_seed(3)
        for sample, _ in zip(op.sample_inputs("cpu", dtype), range(24), strict=False):
            try:
                found.append((list(map(_text, (sample.input, *sample.args))),
                              [f"{key}={_text(value)}" for key, value in sample.kwargs.items()]))
            except ValueError:
                continue
    return found


def _forms(name: str) -> list[str]:
    """How a function of the table is called."""
    import torch

    found: list[str] = []
    owner: Any = torch
    for part in name.split("."):
        owner = getattr(owner, part, None)
    if callable(owner):
        found.append(f"torch.{name}")
    for method in (name, name + "_"):
        if "." not in name and callable(getattr(torch.Tensor, method, None)):
            found.append(f".{method}")
    return found


def _right_call(name: str, choice: random.Random) -> Call | None:
    """A call that fits, perhaps."""
    samples = _samples(name)
    forms = _forms(name)
    if samples and forms:
        positional, named = choice.choice(samples)
        return Call(choice.choice(forms), list(positional), list(named), [])
    if name not in schemas():
        return None
    caller = Caller(choice.randrange(1 << 40), [name])
    caller.wild = 0.0
    how, positional, named = caller.parts()
    return Call(how, positional, named, caller.lines)


def _changed(call: Call, choice: random.Random) -> Call:
    """The call with one change."""
    positional, named = list(call.positional), list(call.named)
    first = 1 if call.how.startswith(".") else 0
    places = [*range(first, len(positional)), *range(len(positional), len(positional) + len(named))]
    what = choice.random()
    if places and what < 0.82:
        place = choice.choice(places[1:] if places[1:] and not first and choice.random() < 0.7 else places)
        key, old = "", positional[place] if place < len(positional) else named[place - len(positional)]
        if place >= len(positional):
            key, _, old = old.partition("=")
        if choice.random() < 0.35 and not old.startswith(("torch.t", "torch.z", "x")):
            value = choice.choice(_CONVERTED).format(old)
        elif old.startswith("(") and choice.random() < 0.4:
            value = choice.choice(("[1., 2]", "(1.5,)", "[None]", "[True]", "()", "1", "2.", "[torch.tensor(1)]"))
        else:
            value = choice.choice(_OTHERS)
        if key:
            named[place - len(positional)] = f"{key}={value}"
        else:
            positional[place] = value
    elif what < 0.88 and len(positional) > first:
        del positional[choice.randrange(first, len(positional))]
    elif what < 0.94:
        positional.append(choice.choice(_OTHERS))
    else:
        named.append(choice.choice(_KEYWORDS))
        keys = [each.partition("=")[0] for each in named]
        if len(set(keys)) < len(keys):
            named.pop()
    return Call(call.how, positional, named, call.lines)


def _program(call: Call) -> list[str]:
    return [SETUP, *call.lines, "torch.manual_seed(5)", f"r = {call}", "note(described(r))"]


def written(seed: int, patterns: str = "*") -> list[str] | None:
    """The program of a seed; None if no call was found that PyTorch accepts."""
    choice = random.Random(seed)
    called = [name for name in names() if fnmatch.fnmatchcase(name, patterns)]
    _, there = libraries()
    for _ in range(20):
        call = _right_call(choice.choice(called), choice)
        if call is not None and not any(step.error for step in run(_program(call), there)):
            return _program(_changed(call, choice))
    return None


def checked(seed: int, patterns: str = "*") -> tuple[list[str], Disagreement | None]:
    """The program of a seed, and where the libraries disagree about it."""
    here, there = libraries()
    program = written(seed, patterns)
    if program is None:
        return [], None
    steps = run(program, there)
    found = compare(run(program, here), steps)
    return program, None if is_pythons(found) or names_own_class(found) else decided(program, found, steps, here, there)


def names_own_class(found: Disagreement | None) -> bool:
    """Whether both libraries raise the same error of Python's, which names a class of the library.

    Python takes the name from the class's C structure, which has the module in it for PyTorch's classes only.
    """
    if found is None or found.what != "error":
        return False
    there = str(found.there)
    return _OWN_CLASS.search(there) is not None and str(found.here) == _OWN_CLASS.sub(r"'\1'", there)


_OWN_CLASS = re.compile(r"'torch\.(dtype|Size|layout|memory_format|device)'")


def kind_of(found: Disagreement) -> str:
    """What a disagreement is about."""
    if found.what != "error":
        return "results"
    if found.here is None or found.there is None:
        return "accepted" if found.here is None else "refused"
    return "class" if found.here.partition(":")[0] != found.there.partition(":")[0] else "words"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run programs; the exit status says whether all agreed."""
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs.wrong_calls", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=2000, help="how many (default 2000)")
    parser.add_argument("--seed", type=int, default=0, help="the first program's seed (default 0)")
    parser.add_argument("--replay", type=int, metavar="SEED", help="run the program of one seed")
    parser.add_argument("--names", default="*", help="functions, as a pattern")
    parser.add_argument("--kinds", default="accepted,refused,class,words,results", help="which disagreements to show")
    parser.add_argument("--most", type=int, default=10, help="show so many disagreements (default 10)")
    given = parser.parse_args(arguments)
    seeds = [given.replay] if given.replay is not None else range(given.seed, given.seed + given.programs)
    counts: collections.Counter[str] = collections.Counter()
    began, ran = time.perf_counter(), 0
    for seed in seeds:
        program, found = checked(seed, given.names)
        ran += bool(program)
        if found is None:
            if given.replay is not None:
                print("\n".join(program))
            continue
        counts[kind_of(found)] += 1
        if kind_of(found) in given.kinds.split(",") and counts["shown"] < given.most:
            counts["shown"] += 1
            print(f"[{kind_of(found)}] " + explained(seed, program, found, shorten=False,
                                                     command="tests.random_programs.wrong_calls"), flush=True)
    del counts["shown"]
    print(f"{ran} programs, {counts.total()} disagreements ({100 * counts.total() / max(ran, 1):.1f} %): "
          f"{', '.join(f'{kind} {n}' for kind, n in counts.most_common())}; {time.perf_counter() - began:.0f} s")
    return 1 if counts else 0


if __name__ == "__main__":
    sys.exit(main())
