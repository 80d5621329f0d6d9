"""Reductions: along a dimension that is cut, each process reduces its part, and the rest is pending."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...._tensor.dispatch.apply import apply
from ....shapes import wrap_dims
from ...placement_types import Partial, Shard
from .._dtensor_spec import DTensorSpec
from .._partial import _NormPartial
from .strategy import OpCall, Strategy, rule


def reduced_dims(call: OpCall) -> tuple[int, ...]:
    """The dimensions that a reduction is over."""
    ndim = len(call.shape(0))
    dim = call.params.get("dim")
    if call.op.forward.__name__ in ("_max_of_rows", "_min_of_rows", "_median_of_rows"):
        return (ndim - 1,)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    return wrap_dims((dim,) if isinstance(dim, int) else tuple(dim), ndim)


def _kept(call: OpCall) -> list[Strategy]:
    """Strategies in which a dimension that is not reduced is cut."""
    dims, ndim = reduced_dims(call), len(call.shape(0))
    keepdim = call.params.get("keepdim", False)
    return [call.strategy({0: Shard(d)}, Shard(d if keepdim else d - sum(r < d for r in dims)))
            for d in range(ndim) if d not in dims]


def _pending(call: OpCall, size: int, placement: Partial, even: bool = False) -> list[Strategy]:
    """Strategies in which a dimension that is reduced is cut."""
    shape = call.shape(0)
    return [call.strategy({0: Shard(d)}, placement) for d in reduced_dims(call)
            if not even or shape[d] % _parts(call, d, size) == 0]


def _parts(call: OpCall, dim: int, size: int) -> int:
    """The largest number of parts that a dimension is, or may be, in."""
    parts = size
    spec = call.inputs[0]
    for i, placement in enumerate(spec.placements):
        if placement.is_shard(dim):
            parts = max(parts, spec.mesh.size(i))
    whole = 1
    for i, placement in enumerate(spec.placements):
        whole *= spec.mesh.size(i) if placement.is_shard(dim) else 1
    return max(parts, whole)


@rule("sum", "nansum", "count_nonzero", "trace")
def sums(call: OpCall, size: int) -> list[Strategy]:
    """Sums: of parts, and of summands."""
    if call.op.name == "trace":
        return []
    result = [*_kept(call), *_pending(call, size, Partial("sum"))]
    if call.op.name == "sum":
        result += [call.strategy({0: p}, p) for p in (Partial("sum"), Partial("avg"))]
    return result


@rule("mean")
def mean(call: OpCall, size: int) -> list[Strategy]:
    """Means: the mean of the means of equal parts."""
    return [*_kept(call), *_pending(call, size, Partial("avg"), even=True),
            *(call.strategy({0: p}, p) for p in (Partial("sum"), Partial("avg")))]


@rule("prod")
def products(call: OpCall, size: int) -> list[Strategy]:
    """Products of products."""
    return [*_kept(call), *_pending(call, size, Partial("product"))]


def _of_empty_parts(call: OpCall, inputs: list[Any], params: dict[str, Any], specs: list[Any],
                    outputs: list[DTensorSpec]) -> Any:
    """The reduction of a part; of one without elements, the number that changes no other process's."""
    x = inputs[0]
    if x.numel() or call.op.name in ("any", "all"):
        return apply(call.op, inputs, params)
    if call.op.name in ("linalg_vector_norm", "norm"):
        value: Any = 0
    elif not x.dtype.is_floating_point:
        info = np.iinfo(x.dtype.numpy)
        value = info.min if call.op.name in ("amax", "max") else info.max
    else:
        value = -math.inf if call.op.name in ("amax", "max") else math.inf
    return x.new_full(outputs[0].local_shape(), value, dtype=outputs[0].dtype)


@rule("amax", "_max_all", "any", run=_of_empty_parts)
def maxima(call: OpCall, size: int) -> list[Strategy]:
    """Maxima of maxima."""
    return [*_kept(call), *_pending(call, size, Partial("max"))]


@rule("amin", "_min_all", "all", run=_of_empty_parts)
def minima(call: OpCall, size: int) -> list[Strategy]:
    """Minima of minima."""
    return [*_kept(call), *_pending(call, size, Partial("min"))]


def _norm_type(call: OpCall) -> Any:
    order = call.params.get("ord", 2)
    return float(2 if order is None else order)


@rule("linalg_vector_norm", "_norm_in_dims", "_norm_whole", run=_of_empty_parts)
def norms(call: OpCall, size: int) -> list[Strategy]:
    """Norms of parts: a pending norm."""
    order = call.params.get("ord", 2)
    pending = [] if order is not None and not isinstance(order, (int, float)) else _pending(
        call, size, _NormPartial(_norm_type(call)))
    return [*_kept(call), *pending]


@rule("var", "std", "var_mean", "std_mean", "logsumexp", "_max_dim", "_min_dim", "_max_of_rows", "_min_of_rows",
      "argmax", "argmin", "aminmax", "median", "nanmedian", "mode", "kthvalue", "_tie_shares")
def whole_rows(call: OpCall, size: int) -> list[Strategy]:
    """Reductions that need all elements along their dimensions."""
    if call.op.name == "_tie_shares":
        dims, out = reduced_dims(call), call.shape(1)
        ndim = len(call.shape(0))
        keepdim = len(out) == ndim
        return [call.strategy({0: Shard(d), 1: Shard(d if keepdim else d - sum(r < d for r in dims))}, Shard(d))
                for d in range(ndim) if d not in dims]
    return _kept(call)


__all__ = ["reduced_dims"]
