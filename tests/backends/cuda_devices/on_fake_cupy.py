"""`cupy_devices`: CUDA devices of the runtime on CuPy, with the module of `fake_cupy` in its place.

With FLAMBEAU_TEST_CUDA=1 they are the GPUs of the machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import flambeau as torch
from flambeau.backends.cuda_devices import cupy_kernels, install
from flambeau.backends.cuda_devices.cupy_runtime import CupyRuntime
from tests.backends.cuda_devices import fake_cupy

#: the module's code as that of a library: what compiled functions read of the user's code, they check in each call
_LIBRARY: dict[str, Any] = {"__name__": "cupy"}
exec(compile(Path(fake_cupy.__file__).read_text(), "<frozen cupy>", "exec"), _LIBRARY)


def runtime_on(cupy: Any) -> CupyRuntime:
    """The runtime on a module of `fake_cupy`, whose `libraries` are in the place of NVIDIA's."""
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
