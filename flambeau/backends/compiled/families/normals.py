"""Multi-threaded Box-Muller transform; gives the bits of `kernels.random.boxmuller`."""

from __future__ import annotations

from functools import cache

import numpy as np

from ....codegen.scalar.scalar_ir import FLOAT32, apply, variable
from ....errstate import run_quietly
from ..elementwise import ElementwiseKernel

#: PyTorch's vector length: eight radii, then eight angles
_BLOCK = 8


@cache
def _kernel() -> ElementwiseKernel | None:
    """The kernel; None on processors without fused multiply-add, whose rounding differs."""
    from ....codegen.llvm.vectors import host_has_fma

    if not host_has_fma():
        return None
    first, second = variable(0, FLOAT32), variable(1, FLOAT32)
    radius = apply("normal_radius", first)
    return ElementwiseKernel([radius * apply("normal_cosine", second), radius * apply("normal_sine", second)],
                             [FLOAT32] * 2)


def box_muller(data: np.ndarray) -> bool:
    """Turn float32 uniforms, a multiple of 16, into standard normal numbers in place; False: NumPy has to."""
    runner = _kernel()
    if runner is None:
        return False
    blocks = data.reshape(-1, 2, _BLOCK)
    halves = blocks[:, 0], blocks[:, 1]
    run_quietly(runner.run_into, halves, halves)
    return True


__all__ = ["box_muller"]
