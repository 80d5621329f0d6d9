"""What PyTorch prints for each program: `python -m tests.programs.oracle [NAME...]` writes `expected/NAME.txt`.

PyTorch is imported once; every program then runs in a fork of that process, so that none sees
the warnings given, the random numbers drawn or the options set by another.
"""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.programs.transcript import EXPECTED, PROGRAMS, transcript


def transcripts(programs: Iterable[Path]) -> dict[str, str]:
    """Program name → what it prints under PyTorch."""
    import torch  # before the forks
    import torch._dynamo  # else each program that makes an optimizer imports it

    torch.set_num_threads(1)
    return {program.stem: _run(program) for program in programs}


def _run(program: Path) -> str:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            _become(program, out.fileno(), err.fileno())
        _, status = os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        return transcript(program, out.read().decode(), err.read().decode(), os.waitstatus_to_exitcode(status))


def _become(program: Path, out: int, err: int) -> None:
    """Be `python program` from here on, as the child of a fork."""
    import traceback
    import warnings

    status = 0
    os.dup2(out, 1)
    os.dup2(err, 2)
    sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
    warnings.resetwarnings()
    warnings.simplefilter("default")
    warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"torch\.")  # of itself, to itself
    warnings.filterwarnings("ignore", message=r"__array(_wrap)?__")  # NumPy's, of PyTorch's own methods
    sys.argv = [str(program)]
    try:
        runpy.run_path(str(program), run_name="__main__")
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    wanted = [program for program in PROGRAMS if not sys.argv[1:] or program.stem in sys.argv[1:]]
    for name, text in transcripts(wanted).items():
        (EXPECTED / f"{name}.txt").write_text(text, encoding="utf-8")
