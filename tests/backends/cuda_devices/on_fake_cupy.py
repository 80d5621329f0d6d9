"""`cupy_devices`: CUDA devices of the runtime on CuPy, with the module of `fake_cupy` in its place.

With FLAMBEAU_TEST_CUDA=1 they are the GPUs of the machine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import flambeau as torch
from flambeau.backends.cuda_devices import cupy_kernels, install
from flambeau.backends.cuda_devices.cupy_runtime import CupyRuntime


def _as_library(name: str) -> ModuleType:
    """A module of this folder as that of a library: compiled functions guard what they read of the user's."""
    module = ModuleType(f"{__package__}.{name}")
    path = Path(__file__).with_name(f"{name}.py")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(path.read_text(), f"<frozen {name}>", "exec"), vars(module))
    return module


_as_library("c_functions")
_LIBRARY = vars(_as_library("fake_cupy"))
_SOLVERS = _as_library("fake_cusolver")
#: NVIDIA's libraries -> (the module's state) -> what is in their place
_LIBRARIES: dict[str, Callable[[Any], Any]] = {"cuda": _as_library("fake_driver").fake_driver,
                                               "cublas": _as_library("fake_cublas").fake_cublas,
                                               "cublasLt": _as_library("fake_cublaslt").fake_cublaslt,
                                               "cufft": _as_library("fake_cufft").fake_cufft,
                                               "cusolver": _SOLVERS.fake_cusolver,
                                               "cudnn": _as_library("fake_cudnn").fake_cudnn}


def runtime_on(cupy: Any) -> CupyRuntime:
    """The runtime on a module of `fake_cupy`, whose `libraries` are in the place of NVIDIA's."""
    cupy.libraries.update({name: make(cupy.state) for name, make in _LIBRARIES.items()})
    cublas = cupy.libraries["cublas"]
    vars(cublas).update(vars(_SOLVERS.fake_blas_solvers(cupy.state, cublas)))
    return CupyRuntime(cupy, lambda name, release: cupy.libraries[name])


@contextmanager
def cupy_devices(count: int = 1, memory: int = 1 << 30, ptx: bool = False) -> Iterator[Any]:
    """A block with the runtime's devices; yields the module, whose `state` tells what was done (on a GPU: None).

    Args:
        ptx: whether LLVM generates kernels' PTX; without it modules have entry points only.
    """
    assert torch.testing is not None
    if os.environ.get("FLAMBEAU_TEST_CUDA") == "1":
        import cupy as found

        before = install(CupyRuntime(found))
        try:
            yield SimpleNamespace(cuda=found.cuda, state=None)
        finally:
            install(before)
        return
    kernels: dict[str, Any] = {}
    original = cupy_kernels.ptx.compile_kernels

    def compile_kernels(wanted: Any, architecture: str) -> str:
        kernels.update((each.name, each) for each in wanted)
        return original(wanted, architecture) if ptx else "\n".join(f".visible .entry {each.name}()" for each in wanted)

    cupy = _LIBRARY["fake_cupy"](kernels, count, memory)
    cupy_kernels.ptx.compile_kernels = compile_kernels
    before = install(runtime_on(cupy))
    try:
        yield cupy
    finally:
        install(before)
        cupy_kernels.ptx.compile_kernels = original
