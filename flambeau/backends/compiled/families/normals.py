"""Multi-threaded Box-Muller transform; gives the bits of `kernels.random.boxmuller`."""

from __future__ import annotations

from functools import cache

import numpy as np

from ....codegen.random import normals
from ....codegen.scalar.scalar_ir import FLOAT32
from ....errstate import run_quietly
from ..elementwise import ElementwiseKernel

#: PyTorch's vector length: eight radii, then eight angles
_BLOCK = 8


@cache
def _kernel() -> ElementwiseKernel | None:
    """The kernel; None on processors without fused multiply-add, whose rounding differs."""
    outputs = normals.numbers()
    return None if outputs is None else ElementwiseKernel(outputs, [FLOAT32] * 2)


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
