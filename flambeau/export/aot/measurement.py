"""Measurement of a compiled program, if it is a shared library for this machine."""

from __future__ import annotations

import ctypes
import platform
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

from .build import Report

#: seconds for which runs are repeated
_SECONDS = 0.2


def seconds_of_a_run(report: Report, path: Path) -> float | None:
    """The shortest time of a run with zeros as inputs, for the last combination of sizes; None if it cannot run here.

    Args:
        report: of the program.
        path: the file.
    """
    if path.suffix != ".so" or sys.platform != "linux" or not _is_for_this_machine(path):
        return None
    api = report.interface
    library = ctypes.CDLL(str(path.resolve()))
    sizes = [*report.arenas][-1]
    values = api.numbers(sizes)
    arguments: list[object] = []
    kept: list[np.ndarray] = []

    def reserve(count: int) -> ctypes.c_void_p:
        memory = np.zeros(count + 64, np.uint8)
        kept.append(memory)
        return ctypes.c_void_p(-(-memory.ctypes.data // 64) * 64)

    if api.state:
        arguments += [reserve(api.state), ctypes.c_size_t(api.state)]
        getattr(library, f"{api.name}_state_init")(*arguments)
    arguments += [ctypes.c_int64(size) for size in sizes]
    for operand in (*api.inputs, *api.outputs):
        count = operand.dtype.itemsize
        for extent in operand.shape:
            count *= extent.value(values)
        arguments.append(reserve(count))
    arena_size = getattr(library, f"{api.name}_arena_size")
    arena_size.restype = ctypes.c_size_t
    arena = arena_size(*map(ctypes.c_int64, sizes))
    arguments += [reserve(arena), ctypes.c_size_t(arena)]
    if api.threads > 1:
        arguments.append(ctypes.c_void_p(None))
    run = getattr(library, f"{api.name}_run")
    best, end = None, perf_counter() + _SECONDS
    while best is None or perf_counter() < end:
        start = perf_counter()
        if run(*arguments):
            return None
        taken = perf_counter() - start
        best = taken if best is None else min(best, taken)
    return best


def _is_for_this_machine(path: Path) -> bool:
    machines = {"x86_64": 62, "aarch64": 183}
    with open(path, "rb") as file:
        head = file.read(20)
    return head[:4] == b"\x7fELF" and int.from_bytes(head[18:20], "little") == machines.get(platform.machine())


__all__ = ["seconds_of_a_run"]
