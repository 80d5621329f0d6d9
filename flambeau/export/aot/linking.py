"""Linking: object files and weights as one shared library, object file or WebAssembly module.

The system's C compiler links for this machine if there is one. LLVM's linkers in zig, which `pip install
"flambeau[export]"` brings, link for all targets: against a stub of the C library that has the few functions that LLVM
calls, so that nothing of the target system has to be installed.
"""

from __future__ import annotations

import importlib.util
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .errors import ExportError
from .pool_ir import LIBC
from .targets import Target

_ELF = """\
\t.section .rodata.{symbol},"a",%progbits
\t.hidden {symbol}
\t.globl {symbol}
\t.type {symbol},%object
\t.p2align 6
{symbol}:
\t.incbin "{path}"
\t.size {symbol}, {size}
\t.section .note.GNU-stack,"",%progbits
"""
_WASM = """\
\t.type {symbol},@object
\t.section .rodata.{symbol},"",@
\t.hidden {symbol}
\t.globl {symbol}
\t.p2align 6
{symbol}:
\t.incbin "{path}"
\t.size {symbol}, {size}
"""
#: functions of the C library that generated code may call
_LIBC = ("memcpy", "memmove", "memset", "memcmp")
_STUB = "\n".join(f"\t.globl {name}\n\t.type {name},%function\n{name}:" for name in (*_LIBC, *LIBC)) + "\n"
#: bytes of the stack of a WebAssembly module: kernels keep packed panels there
WASM_STACK = 1 << 20
#: of a module with threads: each instance has a stack pointer of its own, which the loader sets
_SHARED = ("--shared-memory", "--import-memory", f"--max-memory={1 << 32}", "--export=__stack_pointer")


def link(
    path: Path,
    target: Target,
    objects: Sequence[bytes],
    data: dict[str, np.ndarray],
    exported: Sequence[str],
    assembly: str = "",
) -> None:
    """Link a file.

    Args:
        path: to write: a name that ends in `.o` is an object file.
        target: what the objects are for.
        objects: object files.
        data: arrays of bytes by the symbol that they become.
        exported: functions that a WebAssembly module exports.
        assembly: the text of one more module.

    Raises:
        ExportError: there is no linker, or it fails.
    """
    with tempfile.TemporaryDirectory(prefix="flambeau-export-") as name:
        folder = Path(name)
        files = [*_write_objects(folder, objects), *(_assemble(folder, target, *each) for each in data.items())]
        if assembly:
            files.append(_assembled(folder, target, "assembly", assembly))
        out = folder / "linked"
        if target.is_wasm:
            command = [
                *zig(),
                "wasm-ld",
                "--no-entry",
                "--gc-sections",
                "-z",
                f"stack-size={WASM_STACK}",
                "--stack-first",
                "--export=__heap_base",
                "--strip-all",
                *(_SHARED if target.shares_memory else ()),
                *(f"--export={each}" for each in exported),
            ]
        elif path.suffix == ".o":
            command = [*(_linker(target) or [*zig(), "ld.lld"]), "-r", *(["-nostdlib"] if _linker(target) else [])]
        elif _linker(target):
            command = [
                *_linker(target),
                "-shared",
                "-nostartfiles",
                f"-Wl,-soname,{path.name}",
                "-Wl,-z,noexecstack",
                "-Wl,--gc-sections",
                "-Wl,-z,defs",
                "-s",
            ]
        else:
            files.append(_stub(folder, target))
            command = [
                *zig(),
                "ld.lld",
                "-shared",
                "-soname",
                path.name,
                "-z",
                "noexecstack",
                "-z",
                "defs",
                "--gc-sections",
                "--strip-all",
                "--hash-style=both",
            ]
        _run([*command, "-o", str(out), *map(str, files)])
        shutil.copyfile(out, path)


def _write_objects(folder: Path, objects: Sequence[bytes]) -> list[Path]:
    paths = []
    for i, code in enumerate(objects):
        paths.append(folder / f"code{i}.o")
        paths[-1].write_bytes(code)
    return paths


def _assemble(folder: Path, target: Target, symbol: str, array: np.ndarray) -> Path:
    """An object file that has an array of bytes."""
    contents = folder / f"{symbol}.bin"
    array.tofile(contents)
    text = _WASM if target.is_wasm else _ELF
    return _assembled(folder, target, symbol, text.format(symbol=symbol, path=contents, size=array.nbytes))


def _assembled(folder: Path, target: Target, name: str, text: str) -> Path:
    source, out = folder / f"{name}.s", folder / f"{name}.o"
    source.write_text(text)
    _run([*(_linker(target) or [*zig(), "cc", "-target", target.zig_triple]), "-c", str(source), "-o", str(out)])
    return out


def _stub(folder: Path, target: Target) -> Path:
    """A library that stands for the target's C library while linking."""
    out = folder / "libc.so.6"
    _run(
        [
            *zig(),
            "ld.lld",
            "-shared",
            "-soname",
            "libc.so.6",
            "-o",
            str(out),
            str(_assembled(folder, target, "libc", _STUB)),
        ]
    )
    return out


def _linker(target: Target) -> list[str]:
    """The system's C compiler, if the target is this system and there is one."""
    here = sys.platform == "linux" and target.triple.split("-")[0] == platform.machine().lower()
    found = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None) if here else None
    return [] if found is None else [found]


def zig() -> list[str]:
    """The command of zig.

    Raises:
        ExportError: it is not installed.
    """
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang"]
    found = shutil.which("zig")
    if found is None:
        raise ExportError('no linker for this target is installed: pip install "flambeau[export]" brings one')
    return [found]


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ExportError(f"{command[0]} failed with exit status {done.returncode}:\n{done.stderr.strip()}")


__all__ = ["WASM_STACK", "link", "zig"]
