"""Embeddings: tables cut by columns, or by rows, of which each process adds those that it has."""

from __future__ import annotations

from typing import Any

from ...._tensor.dispatch.apply import apply
from ...placement_types import Partial, Shard
from .._dtensor_spec import DTensorSpec
from .._sharding import local_shape_and_offset
from .strategy import OpCall, Strategy, rule

SUM = Partial("sum")


def _rows(weight: DTensorSpec) -> tuple[int, int]:
    """The first row that this process has, and their number."""
    mesh = weight.mesh
    sizes, offsets = local_shape_and_offset(weight.shape, mesh.shape, mesh.get_coordinate(), weight.placements)
    return offsets[0], sizes[0]


def _look_up(call: OpCall, inputs: list[Any], params: dict[str, Any], specs: list[Any],
             outputs: list[DTensorSpec]) -> Any:
    """Rows of this process's part of the table; zeros for those that others have."""
    if not any(p.is_shard(0) for p in specs[0].placements):
        return apply(call.op, inputs, params)
    weight, indices = inputs[0], inputs[1]
    begin, count = _rows(specs[0])
    elsewhere = (indices < begin) | (indices >= begin + count)
    if not count:
        return weight.new_zeros((*indices.shape, weight.shape[1]))
    own = (indices - begin).masked_fill(elsewhere, 0)
    found = apply(call.op, [weight, own], {**params, "padding_idx": -1 if "padding_idx" in params else None})
    return found.masked_fill(elsewhere.unsqueeze(-1), 0)


@rule("_embedding", run=_look_up)
def embedding(call: OpCall, size: int) -> list[Strategy]:
    """weight (V, D), indices (...): the result (..., D)."""
    ndim = len(call.shape(1))
    if call.params.get("sparse"):
        return [call.strategy({1: Shard(d)}, Shard(d)) for d in range(ndim)]
    return [call.strategy({0: Shard(1)}, Shard(ndim)), call.strategy({0: Shard(0)}, SUM),
            *(call.strategy({1: Shard(d)}, Shard(d)) for d in range(ndim))]


@rule("_embedding_backward")
def embedding_backward(call: OpCall, size: int) -> list[Strategy]:
    """The gradient (V, D) of a table, of gradients (..., D) at indices (...)."""
    ndim = len(call.shape(1))
    result = [call.strategy({0: Shard(ndim)}, Shard(1)), call.strategy({0: SUM}, SUM)]
    if not call.params.get("scale_grad_by_freq"):
        result += [call.strategy({0: Shard(d), 1: Shard(d)}, SUM) for d in range(ndim)]
    return result


@rule("_embedding_masked")
def embedding_masked(call: OpCall, size: int) -> list[Strategy]:
    """Gradients of rows: those of the padding are zeros."""
    ndim = len(call.shape(1))
    return [call.strategy({0: Shard(ndim)}, Shard(ndim)),
            *(call.strategy({0: Shard(d), 1: Shard(d)}, Shard(d)) for d in range(ndim))]


__all__ = ["embedding", "embedding_backward"]
