"""Ahead-of-time compilation: programs as shared libraries and WebAssembly modules that need no Python.

program = flambeau.export.export(model, (x,), dynamic_shapes={"x": {0: Dim("batch", max=32)}})
program.save("digits.so")                                    # and digits.h
flambeau.export.aot.compile(train_step, (x, y), "step.so")   # a function, with the state that it writes to
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .build import Progress, Report, build, silent
from .errors import ExportError
from .interface import identifier
from .pool_ir import MAX_THREADS
from .sources import function_source, program_source
from .targets import NAMES, default_name, resolve
from .weights import DTYPES

__all__ = ["NAMES", "ExportError", "Report", "compile", "compile_program"]


def compile(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    target: str | None = None,
    weights: str = "inside",
    weight_dtype: str | None = None,
    threads: int = 1,
    pack_weights: bool | None = None,
    progress: Progress = silent,
) -> Report:
    """Compile a function of tensors, such as a training step, to a file.

    The function runs once, on copies of the arguments; what it writes to is restored. Tensors from outside that it
    reads are weights in the file. Those that it writes to, and hyperparameters of optimizers, are the *state*, memory
    that the caller passes to each run.

    Args:
        function: takes tensors, returns tensors.
        args: example arguments: shapes and dtypes are fixed.
        path: of the file, by its suffix `.so`, `.o` or `.wasm`.
        name: the prefix of the C functions; default: the file's name.
        target: one of `NAMES`; default: x86-64 or what this machine is, and wasm32 for `.wasm`.
        weights: "inside" the file, or "beside" it in a safetensors file, which may be mapped.
        weight_dtype: in which large float32 weights are stored: None (as they are), "bfloat16", or "int8" with a scale
            per row. They are decoded into memory of the caller once.
        threads: how many threads a run is planned for; more than 1 adds functions that start and stop a pool of
            threads, which is passed to each run. The loader of a `.wasm` does that, by workers.
        pack_weights: whether weights inside are stored as kernels read them, a copy for each processor; else each run
            packs them. Default: for targets of one processor, or up to a megabyte.
        progress: called with the stage, how many of its parts are done, and of how many.

    Raises:
        ExportError: the function cannot be compiled, or there is no linker.
        ValueError: there is no such target, kind of file or option.

    >>> import os, tempfile
    >>> import flambeau as torch
    >>> from flambeau.export import aot
    >>> total = torch.zeros(2)
    >>> def count(x):
    ...     total.add_(x)
    ...     return total.sum()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = aot.compile(count, (torch.ones(2),), os.path.join(folder, "count.so"), target="native")
    ...     print(sorted(os.listdir(folder)), report.state)
    ['count.h', 'count.so'] 8
    """
    path = Path(path)
    chosen = resolve(_target_name(path, target), _checked_threads(threads))
    return build(
        function_source(function, args, name or identifier(path.stem)),
        path,
        chosen,
        progress,
        *_stored(weights, weight_dtype),
        threads,
        pack_weights,
    )


def compile_program(
    program: Any,
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    target: str | None = None,
    sizes: dict[str, Iterable[int]] | None = None,
    weights: str = "inside",
    weight_dtype: str | None = None,
    threads: int = 1,
    pack_weights: bool | None = None,
    progress: Progress = silent,
) -> Report:
    """Compile an exported program to a file: `ExportedProgram.save` for `.so`, `.o` and `.wasm`.

    Args:
        program: an `ExportedProgram`.
        path: of the file.
        name, target, weights, weight_dtype, threads, pack_weights, progress: as in `compile`.
        sizes: name of a dynamic size -> the values for which there is code; default: its range, or, where it has no
            maximum, 1 to 8, 16, 32 and 64.

    Raises:
        ExportError: the program cannot be compiled, or there is no linker.
        ValueError: there is no such target, kind of file, size or option.

    >>> import os, tempfile
    >>> import flambeau as torch
    >>> from flambeau.export import aot
    >>> program = torch.export.export(torch.nn.Linear(2, 3), (torch.ones(4, 2),))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = aot.compile_program(program, os.path.join(folder, "line.so"), target="native")
    >>> [f"{each.name}: {each.c_type}" for each in (*report.interface.inputs, *report.interface.outputs)]
    ['input: float', 'output: float']
    """
    path = Path(path)
    chosen = resolve(_target_name(path, target), _checked_threads(threads))
    source = program_source(program, name or identifier(path.stem), sizes, progress)
    stored = _stored(weights, weight_dtype)
    return build(source, path, chosen, progress, *stored, threads, pack_weights)


def _checked_threads(threads: int) -> int:
    if not 1 <= threads <= MAX_THREADS:
        raise ValueError(f"threads= is from 1 to {MAX_THREADS}, not {threads}")
    return threads


def _stored(weights: str, weight_dtype: str | None) -> tuple[str | None, bool]:
    if weights not in ("inside", "beside"):
        raise ValueError(f'weights= is "inside" or "beside", not {weights!r}')
    if weight_dtype not in DTYPES:
        raise ValueError(f'weight_dtype= is None, "bfloat16" or "int8", not {weight_dtype!r}')
    return weight_dtype, weights == "beside"


def _target_name(path: Path, target: str | None) -> str:
    if path.suffix not in (".so", ".o", ".wasm"):
        raise ValueError(f"a compiled program is a file with the suffix .so, .o or .wasm, not {path.name!r}")
    name = default_name(path.suffix == ".wasm") if target is None else target
    if (name == "wasm32") != (path.suffix == ".wasm"):
        raise ValueError(f"{path.name!r} cannot be of the target {name!r}: .wasm files are of wasm32, others are not")
    return name
