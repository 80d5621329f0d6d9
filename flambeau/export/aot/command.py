"""The command `flambeau export FILE.py:NAME`: a module or function of a script, compiled to files."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

import flambeau as torch

from ...alias import install as install_alias
from .build import Progress, Report
from .errors import ExportError
from .measurement import seconds_of_a_run

_SHAPE = re.compile(r"(\w+)\[([^\]]*)\]")
_EXTENT = re.compile(r"(?:(\d+)|([A-Za-z_]\w*)(?:=(\d+)(?::(\d+))?)?)")


class UsageError(Exception):
    """An argument that means nothing; the text says what does."""


def export_command(
    source: str,
    examples: Sequence[str],
    outputs: Sequence[Path],
    target: str | None,
    name: str | None,
    weights: Path | None,
    training: bool,
    beside: bool = False,
    weight_dtype: str | None = None,
    threads: int = 1,
) -> int:
    """Compile a module or function of a script, and print a report.

    Args:
        source: `FILE.py:NAME`.
        examples: the example arguments, `DTYPE[EXTENTS]` or names in the script.
        outputs: the files to write.
        target, name: as of `ExportedProgram.save`.
        weights: a checkpoint that is loaded into the module.
        training: whether a module is exported in training mode.
        beside, weight_dtype: how the program's weights are stored.
        threads: how many threads a run is planned for.

    Returns:
        The exit status: 0, 1 if it cannot be compiled, or 2 for wrong arguments.
    """
    try:
        script, subject = _load(source)
        args, shapes = _examples(script, examples)
        for path in outputs:
            options = {
                "name": name,
                "target": target,
                "weights": "beside" if beside else "inside",
                "weight_dtype": weight_dtype,
                "threads": threads,
            }
            print(_export(subject, args, shapes, path, options, weights, training))
    except UsageError as error:
        print(f"flambeau export: {error}", file=sys.stderr)
        return 2
    except (ExportError, ValueError, RuntimeError) as error:
        print(f"flambeau export: {error}", file=sys.stderr)
        return 1
    return 0


def _export(
    subject: Any,
    args: tuple[Any, ...],
    shapes: Any,
    path: Path,
    options: dict[str, Any],
    checkpoint: Path | None,
    training: bool,
) -> str:
    from . import compile, compile_program

    if not isinstance(subject, torch.nn.Module):
        if checkpoint is not None or training or any(shapes):
            raise UsageError("--weights, --train and dynamic sizes are of modules; this is a function")
        return _described(compile(subject, args, path, progress=_bar(), **options), path)
    if checkpoint is not None:
        subject.load_state_dict(_state_dict(checkpoint))
    subject.train(training)
    program = torch.export.export(subject, args, dynamic_shapes=shapes if any(shapes) else None)
    if path.suffix in (".so", ".o", ".wasm"):
        return _described(compile_program(program, path, progress=_bar(), **options), path)
    program.save(path)
    return f"{path}: {path.stat().st_size:,} bytes"


def _state_dict(path: Path) -> Any:
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    return torch.load(path, weights_only=True)


def _load(source: str) -> tuple[ModuleType, Any]:
    """The script, imported with `torch` meaning flambeau, and what its name refers to."""
    file, separator, name = source.rpartition(":")
    path = Path(file)
    if not separator or not path.is_file():
        raise UsageError(f"there is no file {file or source!r}: give FILE.py:NAME, where NAME is a module or function")
    install_alias()
    sys.path.insert(0, str(path.parent.resolve()))
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file!r} is not a Python file")
    script = module_from_spec(spec)
    sys.modules[path.stem] = script
    spec.loader.exec_module(script)
    subject: Any = script
    for part in name.split("."):
        if not hasattr(subject, part):
            raise UsageError(f"{file} has no {name!r}. It may be below `if __name__ == '__main__':`, which is not run")
        subject = getattr(subject, part)
    if isinstance(subject, type):
        subject = subject()
    return script, subject


def _examples(script: ModuleType, examples: Sequence[str]) -> tuple[tuple[Any, ...], tuple[dict[int, Any] | None, ...]]:
    """The example arguments, and for each its dynamic dimensions."""
    args: list[Any] = []
    shapes: list[dict[int, Any] | None] = []
    dims: dict[str, tuple[Any, int]] = {}
    for text in examples:
        match = _SHAPE.fullmatch(text.replace(" ", ""))
        if match is None:
            if not hasattr(script, text):
                raise UsageError(
                    f"--example {text!r} is neither a name in the script nor DTYPE[EXTENTS], such as "
                    "'float32[batch=1:32,3,28,28]' or 'int64[2,128]'"
                )
            value = getattr(script, text)
            args += value if isinstance(value, (tuple, list)) else [value]
            shapes += [None] * (len(args) - len(shapes))
            continue
        dtype = getattr(torch, match[1], None)
        if not isinstance(dtype, torch.dtype):
            raise UsageError(f"--example {text!r}: {match[1]!r} is not a dtype")
        extents, dynamic = [], {}
        for d, part in enumerate(filter(None, match[2].split(","))):
            extent, dim = _extent(part, dims)
            extents.append(extent)
            if dim is not None:
                dynamic[d] = dim
        args.append(torch.randn(extents).to(dtype) if dtype.is_floating_point else torch.zeros(extents, dtype=dtype))
        shapes.append(dynamic or None)
    if not args:
        raise UsageError("give an example of each argument: --example 'float32[1,3,224,224]'")
    return tuple(args), tuple(shapes)


def _extent(part: str, dims: dict[str, tuple[Any, int]]) -> tuple[int, Any]:
    """The extent of an example, and its dimension if it is dynamic: `8`, `batch`, `batch=4`, `batch=1:32`."""
    match = _EXTENT.fullmatch(part)
    if match is None:
        raise UsageError(f"an extent is a number, or NAME=LOW:HIGH for a dynamic size, not {part!r}")
    number, name, low, high = match.groups()
    if number is not None:
        return int(number), None
    if name not in dims:
        if high is not None:
            example = max(int(low), min(int(high), 2))
            dims[name] = torch.export.Dim(name, min=int(low), max=int(high)), example
        else:
            dims[name] = torch.export.Dim(name), int(low or 2)
    dim, example = dims[name]
    return example, dim


def _bar() -> Progress:
    """A progress bar on a terminal, else a line for each stage."""
    terminal = sys.stderr.isatty()
    started = perf_counter()

    def show(stage: str, done: int, total: int) -> None:
        if not terminal:
            if done == total:
                print(f"{stage}: {perf_counter() - started:.1f} s", file=sys.stderr)
            return
        filled = 30 * done // total
        end = "\n" if done == total else ""
        print(
            f"\r{stage:10} [{'#' * filled}{'.' * (30 - filled)}] {done}/{total}", end=end, file=sys.stderr, flush=True
        )

    return show


def _described(report: Report, path: Path) -> str:
    seconds = seconds_of_a_run(report, path)
    measured = "" if seconds is None else f"\none run takes {seconds * 1e6:,.1f} us here, on one thread"
    return f"{report}{measured}"


__all__ = ["UsageError", "export_command"]
