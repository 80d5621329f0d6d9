"""Operators that need all elements along some dimensions and keep the shape: softmax, norms, scans, sorting."""

from __future__ import annotations

from ....shapes import wrap_dim
from ...placement_types import Partial, Shard
from .strategy import OpCall, Strategy, rule


def _others(call: OpCall, dims: set[int]) -> list[Strategy]:
    """Every input of the first one's number of dimensions cut along a dimension that is not one of `dims`."""
    ndim = len(call.shape(0))
    same = [i for i in call.tensors() if len(call.shape(i)) == ndim]
    return [call.strategy(dict.fromkeys(same, Shard(d)), Shard(d)) for d in range(ndim) if d not in dims]


@rule("softmax", "log_softmax", "_safe_softmax", "_softmax_backward", "_log_softmax_backward", "cumprod",
      "cummax", "cummin", "logcumsumexp", "_sort", "_sort_stable", "argsort", "topk", "_recurrence", "glu",
      "_exclusive_cumprod")
def along(call: OpCall, size: int) -> list[Strategy]:
    """An operator along one dimension."""
    ndim = len(call.shape(0))
    return _others(call, {wrap_dim(call.params.get("dim", -1), max(1, ndim))})


@rule("cumsum", "_cumsum_backward", "flip", "roll", "_shift_along")
def linear_along(call: OpCall, size: int) -> list[Strategy]:
    """A linear operator along dimensions."""
    ndim = len(call.shape(0))
    dims = call.params.get("dim", call.params.get("dims", ()))
    chosen = {wrap_dim(d, max(1, ndim)) for d in ((dims,) if isinstance(dims, int) else dims)}
    if call.op.name == "roll" and not chosen:
        chosen = set(range(ndim))
    return [*_others(call, chosen), *(call.strategy({0: p}, p) for p in (Partial("sum"), Partial("avg")))]


@rule("tril", "triu")
def triangle(call: OpCall, size: int) -> list[Strategy]:
    """The last two dimensions are needed whole."""
    ndim = len(call.shape(0))
    return [*_others(call, {ndim - 1, ndim - 2}), call.strategy({0: Partial("sum")}, Partial("sum"))]


@rule("_layer_norm", "_rms_norm")
def layer_norm(call: OpCall, size: int) -> list[Strategy]:
    """A norm over the last dimensions: the others may be cut; weight and bias are replicated."""
    ndim = len(call.shape(0))
    return [call.strategy({0: Shard(d)}, Shard(d)) for d in range(ndim - len(call.params["normalized_shape"]))]


@rule("_group_norm")
def group_norm(call: OpCall, size: int) -> list[Strategy]:
    """A norm of each example."""
    return [call.strategy({0: Shard(0)}, Shard(0))]


__all__ = ["layer_norm"]
