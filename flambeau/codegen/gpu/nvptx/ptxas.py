"""NVIDIA's assembler `ptxas`: checks PTX and reports what a kernel needs. Optional: PyPI's nvidia-cuda-nvcc-cu12.

Kernels run without it, since the driver has an assembler of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple


class Resources(NamedTuple):
    """What the assembler reports of a kernel: registers of a thread, bytes that it spills, bytes of shared memory."""

    registers: int
    spilled: int
    shared: int


@cache
def path() -> str | None:
    """The assembler: `FLAMBEAU_PTXAS`, that of the package nvidia-cuda-nvcc, or the one on the path; None for none."""
    named = os.environ.get("FLAMBEAU_PTXAS")
    if named:
        return named
    try:
        spec = find_spec("nvidia.cuda_nvcc")
    except ModuleNotFoundError:
        spec = None
    for folder in () if spec is None else spec.submodule_search_locations or ():
        program = Path(folder) / "bin" / "ptxas"
        if program.exists():
            return str(program)
    return shutil.which("ptxas")


def assemble(ptx: str, architecture: str, optimize: bool = True) -> dict[str, Resources]:
    """Assemble PTX; return the resources of each entry point.

    Args:
        ptx: the code.
        architecture: such as "sm_80".
        optimize: False if only the check of the code is of interest, which takes a fraction of the time.

    Raises:
        FileNotFoundError: there is no assembler.
        RuntimeError: it refuses the code; the message is its own.
    """
    program = path()
    if program is None:
        raise FileNotFoundError("no ptxas here: pip install nvidia-cuda-nvcc-cu12, or set FLAMBEAU_PTXAS to its path")
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder) / "kernels.ptx", Path(folder) / "kernels.cubin"
        source.write_text(ptx)
        options = ["-v", f"-O{3 if optimize else 0}", f"-arch={architecture}", "-o", str(output)]
        done = subprocess.run([program, *options, str(source)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ptxas refuses the code for {architecture}:\n{done.stdout}{done.stderr}")
    return parse_resources(done.stdout + done.stderr)


def parse_resources(report: str) -> dict[str, Resources]:
    """The resources in a report of `ptxas -v`.

    >>> parse_resources("ptxas info    : Function properties for k\\n"
    ...                 "    0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\\n"
    ...                 "ptxas info    : Used 32 registers, 1024 bytes smem, 368 bytes cmem[0]")
    {'k': Resources(registers=32, spilled=12, shared=1024)}
    """
    found: dict[str, Resources] = {}
    name, spilled = "", 0
    for line in report.splitlines():
        if match := re.search(r"Function properties for (\S+)", line):
            name, spilled = match[1], 0
        elif match := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            spilled = int(match[1]) + int(match[2])
        elif match := re.search(r"Used (\d+) registers", line):
            shared = re.search(r"(\d+) bytes smem", line)
            found[name] = Resources(int(match[1]), spilled, int(shared[1]) if shared else 0)
    return found


__all__ = ["Resources", "assemble", "parse_resources", "path"]
