"""The examples of PyTorch's own docstrings under both libraries: `python -m tests.packages.docstrings`.

The statements after `>>>` in the docstrings of PyTorch's public functions, classes and methods are read from the
installed PyTorch and run in a namespace of their own, with the same seed, under flambeau and under PyTorch, in
processes of some hundred docstrings each. What a statement shows and prints, or its error, is compared; numbers may
differ by rounding. Of a docstring the first statement that differs is reported.
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import fnmatch
import importlib
import inspect
import io
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
from rich.progress import track

ROOT = Path(__file__).resolve().parents[2]
#: below `torch`, where public names are looked for
MODULES = """
    . nn nn.functional nn.attention nn.attention.flex_attention nn.init nn.parallel nn.utils nn.utils.parametrizations
    nn.utils.parametrize nn.utils.prune nn.utils.rnn nn.utils.stateless accelerator amp autograd autograd.forward_ad
    autograd.functional autograd.graph backends compiler cpu distributions distributions.constraints distributions.kl
    distributions.transforms export fft func futures fx hub jit library linalg masked monitor multiprocessing nested
    onnx optim optim.lr_scheduler optim.swa_utils overrides profiler random serialization signal.windows sparse special
    storage testing types utils._pytree utils.benchmark utils.checkpoint utils.data utils.dlpack utils.flop_counter
    utils.hooks
"""
#: docstrings of one process, and seconds that a statement may take
GROUP, LIMIT = 200, 20
#: relative difference of printed numbers
TOLERANCE = 2e-4
_NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")


# ----- docstrings -----

def examples() -> dict[str, list[str]]:
    """Name -> the statements in its docstring, of PyTorch's public names."""
    found: dict[str, list[str]] = {}
    seen: set[int] = set()
    for name, thing in _public_things():
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        statements = _statements(thing)
        if statements:
            found[name] = statements
    return found


def _public_things() -> Iterator[tuple[str, Any]]:
    for below in MODULES.split():
        place = "torch" if below == "." else f"torch.{below}"
        module = importlib.import_module(place)
        for name in sorted(vars(module)):
            thing = getattr(module, name)
            if name.startswith("__") or isinstance(thing, types.ModuleType):
                continue
            yield f"{place}.{name}", thing
            if inspect.isclass(thing) and thing.__module__.startswith("torch"):
                for method, member in sorted(vars(thing).items()):
                    function = getattr(member, "__func__", getattr(member, "fget", member))
                    if callable(function):
                        yield f"{place}.{name}.{method}", function
    tensor = importlib.import_module("torch").Tensor
    for name in sorted(dir(tensor)):
        yield f"torch.Tensor.{name}", getattr(tensor, name)


def _statements(thing: Any) -> list[str]:
    """The statements after `>>>` of a docstring, also of one whose examples are indented unevenly."""
    text = inspect.getdoc(thing) or ""
    if not isinstance(text, str) or ">>>" not in text:
        return []
    try:
        return [each.source for each in doctest.DocTestParser().get_examples(text)]
    except ValueError:
        found: list[str] = []
        for line in map(str.strip, text.splitlines()):
            if line.startswith(">>> "):
                found.append(line[4:] + "\n")
            elif line.startswith("... ") and found:
                found[-1] += line[4:] + "\n"
        return found


# ----- in the child process -----

class _TimedOut(BaseException):
    pass


def shown(statement: str, namespace: dict[str, Any]) -> str:
    """What a statement shows and prints, or its error."""
    text = io.StringIO()
    sys.displayhook = lambda value: print(repr(value), file=text) if value is not None else None
    signal.alarm(LIMIT)
    try:
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(statement, "<example>", "single"), namespace)
        return text.getvalue()
    except _TimedOut:
        return "not ended in time"
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    finally:
        signal.alarm(0)
        sys.displayhook = sys.__displayhook__


def run(group: dict[str, list[str]]) -> dict[str, list[str]]:
    """Name -> what each statement shows."""
    import torch

    def stop(*_: Any) -> None:
        raise _TimedOut

    signal.signal(signal.SIGALRM, stop)
    warnings.simplefilter("ignore")
    found: dict[str, list[str]] = {}
    for name, statements in group.items():
        namespace: dict[str, Any] = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "np": numpy,
                                     "math": math, "__name__": "__main__"}
        random.seed(0)
        numpy.random.seed(0)
        torch.manual_seed(0)
        found[name] = [shown(statement, namespace) for statement in statements]
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
        torch.set_flush_denormal(False)
    return found


# ----- in the parent process -----

def observations(group: dict[str, list[str]], library: str) -> dict[str, list[str]]:
    """`run` in a new process of a library; names at which it ended are missing."""
    start = ["-m", "flambeau", "run"] if library == "flambeau" else []
    with tempfile.TemporaryDirectory() as folder:
        given, results = Path(folder) / "examples.json", Path(folder) / "results.json"
        given.write_text(json.dumps(group))
        subprocess.run([sys.executable, *start, __file__, "--run", str(given), str(results)], cwd=folder,
                       env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, check=False,
                       stdin=subprocess.DEVNULL)
        found: dict[str, list[str]] = json.loads(results.read_text()) if results.exists() else {}
        return found


def agree(ours: str, theirs: str) -> bool:
    """Whether two texts are equal but for addresses, spaces, the library's name, and rounding of numbers."""
    a, b = (" ".join(re.sub(r"0x[0-9a-f]+", "", each).replace("flambeau", "torch").split()) for each in (ours, theirs))
    if a == b:
        return True
    return _NUMBER.sub("", a) == _NUMBER.sub("", b) and all(
        abs(float(x) - float(y)) <= TOLERANCE * max(1, abs(float(y)))
        for x, y in zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--names", default="*", help="a pattern of names, as `torch.linalg.*`")
    parser.add_argument("--run", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        options.run[1].write_text(json.dumps(run(json.loads(options.run[0].read_text()))))
        return
    all_examples = {name: each for name, each in sorted(examples().items()) if fnmatch.fnmatch(name, options.names)}
    names = list(all_examples)
    statements = different = missing = 0
    for first in track(range(0, len(names), GROUP), description="docstrings"):
        group = {name: all_examples[name] for name in names[first:first + GROUP]}
        theirs, ours = observations(group, "torch"), observations(group, "flambeau")
        for name, seen in theirs.items():
            if name not in ours:
                missing += 1
                print(f"{name}: the process ended")
                continue
            statements += len(seen)
            for statement, a, b in zip(group[name], ours[name], seen, strict=True):
                if not agree(a, b):
                    different += 1
                    print(f"{name}: {statement.strip()[:200]}\n    PyTorch:  {b.strip()[:300]!r}\n"
                          f"    flambeau: {a.strip()[:300]!r}")
                    break
    print(f"{len(names)} docstrings, {statements} statements: {different} docstrings differ, {missing} were not run")


if __name__ == "__main__":
    main()
