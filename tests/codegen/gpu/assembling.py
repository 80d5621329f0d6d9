"""Assembling kernels for the architectures that the tests cover; skips where there is no assembler."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from flambeau.codegen.gpu.kernel_ir import Kernel
from flambeau.codegen.gpu.launches import DeviceLaunch
from flambeau.codegen.gpu.nvptx import ptx, ptxas


def assemble(kernels: Iterable[Kernel]) -> None:
    """Generate and assemble kernels, as one module: all for sm_80, and every third for sm_90, which takes as long.

    The assembler's optimizer, which would take most of the time, is off.
    """
    if ptxas.path() is None:
        pytest.skip("ptxas is not installed: pip install flambeau[cuda-test]")
    distinct = list({kernel.name: kernel for kernel in kernels}.values())
    for architecture, some in (("sm_80", distinct), ("sm_90", distinct[::3])):
        source = ptx.compile_kernels(some, architecture)
        assert set(ptxas.assemble(source, architecture, optimize=False)) == {kernel.name for kernel in some}


def kernels_of(launches: Iterable[DeviceLaunch]) -> list[Kernel]:
    """The kernels of launches, and of their variants for memory that is not aligned."""
    return [kernel for each in launches
            for kernel in (each.kernel, *([] if each.unaligned is None else [each.unaligned.kernel]))]
