"""`out=` of large elementwise operators: the compiled kernel writes into it. All others compute, then copy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from ...backends.compiled.thresholds import LARGE_SEEN, MIN_ELEMENTS
from ...modes import special
from ...ops.declare import ELEMENTWISE, Op
from ...shapes import broadcast_shapes
from ..dispatch.apply import run_compiled_kernel
from ..dispatch.promotion import promoted_operands, round_params
from ..dispatch.write_checks import check_overlap, prepare_write
from ..tensor import Tensor


def compute_into_out(op: Op, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any]) -> bool:
    """Let an elementwise operator's compiled kernel write into `out=`; False, nothing written, if it cannot."""
    if not LARGE_SEEN[0] or special[0] or op.kind != ELEMENTWISE or op.n_outputs != 1 or len(outs) != 1:
        return False
    out, = outs
    target = out._array if isinstance(out, Tensor) else None
    if target.__class__ is not np.ndarray or target.size <= MIN_ELEMENTS[0]:
        return False
    large: list[np.dtype] = []
    values, narrow = promoted_operands(op, inputs, params, large)
    if not large or any(a.__class__ is not np.ndarray for a in values) or (
            op.exact_out and large[0] != target.dtype):
        return False
    if reduce(broadcast_shapes, (a.shape for a in values)) != target.shape:
        return False
    if narrow is not None and op.promoting_params:
        params = round_params(op, params, narrow)
    check_overlap(target, *(x._array for x in inputs if isinstance(x, Tensor)), disjoint=op.disjoint_out)
    prepare_write(out)
    if run_compiled_kernel(op, values, params, large[0], narrow, out._array) is None:
        return False
    out._bump_version()
    return True


__all__ = ["compute_into_out"]
