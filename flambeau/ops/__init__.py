"""Operator declarations, by family. They compute on arrays, tensors and IR values through the namespace `xp` alone."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import Any

#: the files that `load_library` has loaded: none
loaded_libraries: set[str] = set()


def load_library(path: str | os.PathLike[str]) -> None:
    """Load a library of operators in machine code for PyTorch, which is impossible here.

    The operators of torchaudio and torchvision that their Python code needs are written in Python.

    Raises:
        OSError: for every library but torchaudio's. Torchvision expects it and goes on without its library.
    """
    path = os.fspath(path)
    environment = f"{__package__.partition('.')[0]}.environment"
    if os.path.basename(path) in ("_torchaudio.so", "libtorchaudio.so"):
        importlib.import_module(f"{environment}.torchaudio_operators").define()
        return
    if "torchvision" in path:
        importlib.import_module(f"{environment}.torchvision_operators").define()
    raise OSError(f"{path}: flambeau cannot load libraries that are compiled for PyTorch")


def __getattr__(name: str) -> Any:
    """`torch.ops.aten`, and the operators of a library that the program defines, `torch.ops.mylib`."""
    if name == "aten":
        return importlib.import_module(f"{__name__}.aten")
    package = __package__.partition(".")[0]
    if name == "profiler":
        importlib.import_module(f"{package}.environment.profiler_operators").define()
    elif name == "prims":
        importlib.import_module(f"{package}._prims.operators").define()
    elif name == "higher_order":
        importlib.import_module(f"{package}._higher_order_ops")
    else:
        from importlib.machinery import PathFinder

        if name.startswith("__") or PathFinder.find_spec(f"{__name__}.{name}", __path__):  # a file not imported yet
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from .overloads import namespace_of

    return namespace_of(name)


class _Operators(ModuleType):
    """The class of this module: a program may forget a library's operators, `del torch.ops.mylib`."""

    def __delattr__(self, name: str) -> None:
        from .overloads import namespaces

        if namespaces.pop(name, None) is None:
            super().__delattr__(name)


sys.modules[__name__].__class__ = _Operators
