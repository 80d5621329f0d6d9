"""Many normal numbers at once, of uniforms: the same bits as `kernels.random.boxmuller` makes, by several threads."""

from __future__ import annotations

from functools import cache

import numpy as np

from ....codegen.scalar.scalar_ir import FLOAT32, apply, variable
from ...errstate import run_quietly
from ..elementwise import Runner

#: radii, then angles: PyTorch's vectors of eight
_LANES = 8


@cache
def _runner() -> Runner | None:
    """What turns uniforms into normal numbers; None where a sum of products is rounded twice."""
    from ....codegen.llvm.vectors import host_has_fma

    if not host_has_fma():
        return None
    first, second = variable(0, FLOAT32), variable(1, FLOAT32)
    radius = apply("normal_radius", first)
    return Runner([radius * apply("normal_cosine", second), radius * apply("normal_sine", second)], [FLOAT32] * 2)


def box_muller(data: np.ndarray) -> bool:
    """Turn uniforms into standard normal numbers in place, float32, a multiple of 16 of them; False: NumPy is to."""
    runner = _runner()
    if runner is None:
        return False
    blocks = data.reshape(-1, 2, _LANES)
    halves = blocks[:, 0], blocks[:, 1]
    run_quietly(runner.into, halves, halves)
    return True


__all__ = ["box_muller"]
