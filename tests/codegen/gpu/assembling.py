"""Assembling kernels for all architectures that the tests cover; skips where there is no assembler."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from flambeau.codegen.gpu import ptx, ptxas
from flambeau.codegen.gpu.kernel_ir import Kernel

ARCHITECTURES = ("sm_80", "sm_90")


def assemble(kernels: Sequence[Kernel], architectures: Sequence[str] = ARCHITECTURES) -> dict[str, ptxas.Resources]:
    """Generate and assemble all kernels as one module; the resources on the first architecture."""
    if ptxas.path() is None:
        pytest.skip("ptxas is not installed: pip install flambeau[cuda-test]")
    reports = []
    for architecture in architectures:
        source = ptx.compile_kernels(kernels, architecture)
        reports.append(ptxas.assemble(source, architecture))
        assert set(reports[-1]) == {kernel.name for kernel in kernels}
    return reports[0]
