"""Results of `out=` that kernels write where they are wanted; all others are computed first, and copied."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from ...backends.compiled.thresholds import LEAST, MET
from ...engine.saved.saved_tensor_mutation import about_to_write
from ...modes import special
from ...ops.declare import ELEMENTWISE, Op
from ...shapes import broadcast_shapes
from ..dispatch.apply import on_kernel
from ..dispatch.promotion import _operands, rounded_params
from ..dispatch.write_checks import check_overlap
from ..tensor import Tensor


def written_straight(op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any]) -> bool:
    """Whether the kernel of an elementwise operator on large tensors could write into the tensor given as `out=`."""
    if not MET[0] or special[0] or op.kind != ELEMENTWISE or op.n_outputs != 1 or op.exact_out or len(outs) != 1:
        return False
    out, = outs
    target = out._array if isinstance(out, Tensor) else None
    if target.__class__ is not np.ndarray or target.size <= LEAST[0]:
        return False
    large: list[np.dtype] = []
    values, narrow = _operands(op, inputs, params, large)
    if not large or any(a.__class__ is not np.ndarray for a in values):
        return False
    if reduce(broadcast_shapes, (a.shape for a in values)) != target.shape:
        return False
    if narrow is not None and op.promoting_params:
        params = rounded_params(op, params, narrow)
    check_overlap(target, *(x._array for x in inputs if isinstance(x, Tensor)), apart=op.disjoint_out)
    about_to_write(out)
    if on_kernel(op, values, params, large[0], narrow, target) is None:
        return False
    out._bump_version()
    return True


__all__ = ["written_straight"]
