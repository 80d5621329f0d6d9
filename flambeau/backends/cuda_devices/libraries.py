"""NVIDIA's libraries of kernels (cuBLAS, cuDNN, cuSOLVER, cuFFT), called by ctypes.

They are found where CuPy finds them: loaded in this process already, in NVIDIA's wheels, in `CUDA_PATH`, or where the
system's loader looks. `CupyRuntime.library` is what the rest of the backend asks; stand-ins take their place in tests.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

#: library -> version of its binary interface, by CUDA's release
_VERSIONS: dict[str, dict[int, int]] = {
    "cuda": {12: 1, 13: 1},  # the driver
    "cublas": {12: 12, 13: 13}, "cublasLt": {12: 12, 13: 13}, "cudnn": {12: 9, 13: 9}, "cufft": {12: 11, 13: 12},
    "curand": {12: 10, 13: 10}, "cusolver": {12: 11, 13: 12}, "cusparse": {12: 12, 13: 12},
}
_loaded: dict[tuple[str, int], Any] = {}


def load(name: str, release: int) -> Any:
    """A library, loaded once.

    Args:
        name: `cuda` (the driver), `cublas`, `cublasLt`, `cudnn`, `cufft`, `curand`, `cusolver` or `cusparse`.
        release: CUDA's major version, 12 or 13: the one that CuPy is built for.

    Raises:
        OSError: it is not installed.

    >>> load("cublas", 11)
    Traceback (most recent call last):
    OSError: cublas of CUDA 11 is not supported: CUDA 12 or 13 is needed
    """
    found = _loaded.get((name, release))
    if found is None:
        version = _VERSIONS[name].get(release)
        if version is None:
            raise OSError(f"{name} of CUDA {release} is not supported: CUDA 12 or 13 is needed")
        found = _loaded[name, release] = _open(name, release, version)
    return found


def _open(name: str, release: int, version: int) -> ctypes.CDLL:
    windows = sys.platform == "win32"
    file = f"{'nvcuda' if name == 'cuda' else f'{name}64_{version}'}.dll" if windows else f"lib{name}.so.{version}"
    if not windows:
        try:
            return ctypes.CDLL(file, os.RTLD_NOLOAD | os.RTLD_NOW)  # the one that is in the process already
        except OSError:
            pass
    for directory in _directories(release):
        path = directory / file
        if path.is_file():
            return ctypes.CDLL(str(path))
    try:
        return ctypes.CDLL(file)
    except OSError as error:
        extra = "cuda" if release == 12 else f"cuda{release}"
        raise OSError(f"{file}, a library of NVIDIA's, is not installed ({error}): pip install flambeau[{extra}]"
                      ) from None


def _directories(release: int) -> Iterator[Path]:
    """Where NVIDIA's wheels have libraries, those of CUDA's release first, then the toolkit's."""
    spec = importlib.util.find_spec("nvidia")
    for each in (None if spec is None else spec.submodule_search_locations) or ():
        root = Path(each)
        for pattern in (f"cu{release}/lib", f"cu{release}/bin/x86_64", "*/lib", "*/bin"):
            yield from sorted(root.glob(pattern))
    for name in ("CUDA_PATH", "CUDA_HOME"):
        if name in os.environ:
            for part in ("lib64", "lib", "bin", "bin/x64"):
                yield Path(os.environ[name]) / part


def functions(library: Any, prototypes: Mapping[str, Sequence[Any]], restype: Any = ctypes.c_int) -> SimpleNamespace:
    """Functions of a library, by their names, ready to be called.

    Args:
        library: what `load` returns.
        prototypes: name -> the ctypes of the parameters.
        restype: of the results: a status, by default.

    Raises:
        AttributeError: the library has no function of a name.
    """
    found = SimpleNamespace()
    for name, types in prototypes.items():
        function = getattr(library, name)
        function.argtypes, function.restype = list(types), restype
        setattr(found, name, function)
    return found


#: functions of Python in the place of a library's, as C functions
_callbacks: list[Any] = []


def address(library: Any, name: str) -> int:
    """The address of a function of a library; of a callback where a function of Python, in tests, is in its place.

    Args:
        library: what `load` or `functions` returns.
    """
    function = getattr(library, name)
    if not isinstance(function, ctypes._CFuncPtr):  # type: ignore[attr-defined]  # the class of all C functions
        function = ctypes.CFUNCTYPE(ctypes.c_int, *function.argtypes)(function)
        _callbacks.append(function)
    return ctypes.cast(function, ctypes.c_void_p).value or 0


__all__ = ["address", "functions", "load"]
