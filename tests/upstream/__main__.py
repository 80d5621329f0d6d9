"""Command line: run one of PyTorch's test files on flambeau and print failures.

    python -m tests.upstream test_autograd.py
    python -m tests.upstream test_autograd.py -k "TestAutograd::test_hook*" -v
    python -m tests.upstream test_autograd.py --list-failures

With --oracle the file runs on PyTorch itself with the same stubs: failures there are not flambeau's.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import sys
import time
import unittest
import zlib
from textwrap import dedent

from .import_hook import install
from .isolation import run_forked
from .loading import TestFileFinder, load, lost
from .ranks import SPAWN, fork_processes, with_ranks
from .verdicts import ENDINGS, Ledger, run, tests_of


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.upstream", description=dedent(__doc__ or ""),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="a test file of PyTorch's")
    parser.add_argument("-k", metavar="PATTERN", help="only tests whose Class::test contains or matches this")
    parser.add_argument("--names", metavar="FILE", help="only tests whose Class::test is a line of this file")
    parser.add_argument("--sample", type=float, default=1.0, metavar="P", help="only this part of the tests, by name")
    parser.add_argument("--seed", default="", metavar="S", help="draws another sample")
    parser.add_argument("--part", default="1/1", metavar="I/N", help="the I-th of N parts, for processes side by side")
    parser.add_argument("--seconds", type=float, metavar="S", help="start no test after so many seconds")
    parser.add_argument("--list-failures", action="store_true", help="names of failing tests, nothing else")
    parser.add_argument("--all", action="store_true", help="a line for each test, whatever its outcome")
    parser.add_argument("--oracle", action="store_true", help="run on PyTorch itself")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="only tests of this device: for cuda a GPU with "
                        "FLAMBEAU_TEST_CUDA=1, else the tests' stand-in of one")
    parser.add_argument("--after", metavar="NAME", help="only tests after this one (set where a device was lost)")
    parser.add_argument("--stubs", action="store_true", help="stubs of the test machinery, as without PyTorch")
    parser.add_argument("--spawn", action="store_true", help="start processes of tests anew, do not fork them")
    parser.add_argument("--timeout", type=int, default=20, metavar="S", help="seconds of processor time of a test (20)")
    parser.add_argument("-v", "--verbose", action="store_true", help="full tracebacks")
    return parser.parse_args()


def main() -> int:
    """Run the file; 1 if a test failed."""
    arguments = _arguments()
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(here))
    os.environ["PYTHONPATH"] = os.pathsep.join([os.path.join(here, "child"), root, os.environ.get("PYTHONPATH", "")])
    os.environ["FLAMBEAU_UPSTREAM"] = "oracle" if arguments.oracle else "flambeau"
    os.environ["FLAMBEAU_UPSTREAM_FILE"] = os.path.abspath(arguments.file)
    if arguments.stubs:
        os.environ["FLAMBEAU_UPSTREAM_STUBS"] = "1"
    if arguments.spawn:
        os.environ[SPAWN] = "1"
    if arguments.device:
        os.environ["PYTORCH_TESTING_DEVICE_ONLY_FOR"] = arguments.device
    install(arguments.oracle)
    with contextlib.ExitStack() as stack:
        if arguments.device == "cuda" and not arguments.oracle:
            from tests.backends.cuda_devices.on_fake_cupy import cupy_devices

            stack.enter_context(cupy_devices())
        return _run(arguments, here)


def _run(arguments: argparse.Namespace, here: str) -> int:
    """Load the file and run its tests; 1 if one failed."""
    ledger = Ledger(os.path.join(here, "not_applicable.txt"))
    file = os.path.basename(arguments.file)
    counts: collections.Counter[str] = collections.Counter()
    sys.meta_path.insert(0, TestFileFinder(os.path.dirname(os.path.abspath(arguments.file))))
    module = load(arguments.file)
    for what in lost if arguments.verbose else [each for each in lost if each.startswith(f"{module.__name__}:")]:
        print(f"not loaded: {what}")
    names = None
    if arguments.names:
        with open(arguments.names, encoding="utf-8") as lines:
            names = frozenset(lines.read().split())
    part, parts = map(int, arguments.part.split("/"))
    deadline = time.monotonic() + (arguments.seconds or float("inf"))
    case: type[unittest.TestCase] | None = None
    waiting = arguments.after is not None
    for test in tests_of(module, arguments.k):
        name = f"{type(test).__name__}::{test._testMethodName}"
        if waiting:
            waiting = name != arguments.after
            continue
        if names is not None and name not in names:
            continue
        if zlib.crc32((arguments.seed + name).encode()) >= arguments.sample * 2 ** 32:
            continue
        if zlib.crc32(name.encode()) % parts != part - 1:
            continue
        if time.monotonic() > deadline:
            counts["not started"] += 1
            continue
        if (reason := ledger.reason(f"{file}::{name}")) is not None:
            counts["not applicable"] += 1
            if arguments.all:
                print(f"not applicable {name} - {reason}")
            continue
        if type(test) is not case and not with_ranks():
            if case is not None:
                _run_fixture(case, "tearDownClass")
            case = type(test)
            _run_fixture(case, "setUpClass")
        verdict = (run_forked(test, arguments.timeout, fork_processes) if with_ranks() else
                   run(test, arguments.timeout))
        counts[verdict.ending] += 1
        if verdict.ending == "fail" or arguments.all:
            if arguments.list_failures:
                print(name, flush=True)
            else:
                print(f"{verdict.ending:8} {name} - {verdict.why[:300]}", flush=True)
                if arguments.verbose:
                    print(verdict.trace)
        if verdict.ending == "fail" and arguments.device == "cuda" and _is_lost():
            print(f"the device was lost after {name}: {_summary(arguments, counts)}", flush=True)
            left = [] if not arguments.seconds else ["--seconds", str(max(0.1, deadline - time.monotonic()))]
            os.execv(sys.executable, [sys.executable, "-m", "tests.upstream", *sys.argv[1:], "--after", name, *left])
    if not arguments.list_failures:
        print(_summary(arguments, counts))
    return int(counts["fail"] > 0)


def _run_fixture(case: type[unittest.TestCase], name: str) -> None:
    """Run what a class does before or after its tests; one that fails is named."""
    try:
        getattr(case, name)()
    except Exception as error:
        print(f"not loaded: {case.__name__}.{name}: {type(error).__name__}: {error}")


def _is_lost() -> bool:
    """Whether the device cannot be used any more."""
    import torch

    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


def _summary(arguments: argparse.Namespace, counts: collections.Counter[str]) -> str:
    late = [f"{counts['not started']} not started"] if arguments.seconds else []
    return ", ".join([f"{counts[ending]} {ending}" for ending in ENDINGS] + late)


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # threads of timed-out tests must not block the exit
