"""Joining, indexing, gathering and scattering: dimensions that no index runs over may be cut."""

from __future__ import annotations

from typing import Any

from ....shapes import wrap_dim
from ...placement_types import Partial, Shard
from .._dtensor_spec import DTensorSpec
from .strategy import OpCall, Strategy, rule
from .view import moved

SUM = Partial("sum")


@rule("cat")
def cat(call: OpCall, size: int) -> list[Strategy]:
    """Tensors joined along a dimension, which is needed whole."""
    every = call.tensors()
    ndim = max(len(call.shape(i)) for i in every)
    dim = wrap_dim(call.params.get("dim", 0), max(1, ndim))
    same = all(len(call.shape(i)) == ndim for i in every)
    return [call.strategy(dict.fromkeys(every, p), p) for p in (
        *((Shard(d) for d in range(ndim) if d != dim) if same else ()), SUM, Partial("avg"))] + [
        call.strategy(dict.fromkeys(every, p), p) for p in _pending(call)]


@rule("stack")
def stack(call: OpCall, size: int) -> list[Strategy]:
    """Tensors joined along a new dimension."""
    every = call.tensors()
    ndim = len(call.shape(0))
    dim = wrap_dim(call.params.get("dim", 0), ndim + 1)
    result = [call.strategy(dict.fromkeys(every, Shard(d)), Shard(d + (d >= dim))) for d in range(ndim)]
    return result + [call.strategy(dict.fromkeys(every, p), p) for p in _pending(call)]


def _pending(call: OpCall) -> set[Any]:
    return {p for i in call.tensors() for p in call.inputs[i].placements if p.is_partial()}


def _repeated(call: OpCall, inputs: list[Any], outputs: list[DTensorSpec]) -> dict[str, Any]:
    return call.params


@rule("repeat", localize=_repeated)
def repeat(call: OpCall, size: int) -> list[Strategy]:
    """Copies one after another: dimensions that are repeated once may be cut."""
    shape, repeats = call.shape(0), call.params["repeats"]
    front = len(repeats) - len(shape)
    return moved(call, {d: d + front for d in range(len(shape)) if repeats[d + front] == 1})


@rule("constant_pad_nd")
def pad(call: OpCall, size: int) -> list[Strategy]:
    """Numbers around a tensor: dimensions without may be cut."""
    ndim, padding = len(call.shape(0)), call.params["pad"]
    padded = {ndim - 1 - k // 2 for k, n in enumerate(padding) if n}
    return [call.strategy({0: Shard(d)}, Shard(d)) for d in range(ndim) if d not in padded]


@rule("index_select")
def index_select(call: OpCall, size: int) -> list[Strategy]:
    """Slices at indices: other dimensions may be cut, or the indices."""
    ndim = len(call.shape(0))
    dim = wrap_dim(call.params["dim"], max(1, ndim))
    result = [call.strategy({0: Shard(d)}, Shard(d)) for d in range(ndim) if d != dim]
    return [*result, call.strategy({1: Shard(0)}, Shard(dim))] if len(call.shape(1)) == 1 else result


@rule("gather", "scatter_add", "_scatter", "_scatter_scalar", "scatter_reduce")
def gather(call: OpCall, size: int) -> list[Strategy]:
    """Elements at indices along a dimension: others may be cut if they have the same size in all tensors."""
    ndim = len(call.shape(0))
    dim = wrap_dim(call.params["dim"], max(1, ndim))
    every = call.tensors()
    return [call.strategy(dict.fromkeys(every, Shard(d)), Shard(d)) for d in range(ndim) if d != dim and all(
        len(call.shape(i)) == ndim and call.shape(i)[d] == call.shape(0)[d] for i in every)]


def _scattered(call: OpCall, inputs: list[Any], outputs: list[DTensorSpec]) -> dict[str, Any]:
    """The local sizes where the operator is given those of its result."""
    size = call.params.get("size")
    return call.params if not isinstance(size, (tuple, list)) else {**call.params, "size": outputs[0].local_shape()}


@rule("_scatter_dim", localize=_scattered)
def scatter_dim(call: OpCall, size: int) -> list[Strategy]:
    """The transpose of `gather`."""
    ndim = len(call.shape(0))
    dim = wrap_dim(call.params["dim"], max(1, ndim))
    out = call.outputs[0][0]
    return [call.strategy({0: Shard(d), 1: Shard(d)}, Shard(d)) for d in range(ndim)
            if d != dim and call.shape(1)[d] == out[d] == call.shape(0)[d]]


@rule("_gather_dim")
def gather_dim(call: OpCall, size: int) -> list[Strategy]:
    """`gather` in a derivative."""
    return gather(call, size)


@rule("_index", "_index_put", "_add_at_indices", "index_add", "index_copy", "_index_fill_scalar", "masked_select",
      "take", "put", "_basic_index", "_embed", "_embed_strided", "_take_strided", "select_scatter", "slice_scatter",
      "_nonzero", "argwhere", "_replace_strided", "_masked_select_backward", "repeat_interleave", "rot90",
      "diag_embed", "_gather_padded", "_packed_rows", "_embed_diagonal", "_embed_windows", "bincount", "_isin",
      "_searchsorted")
def replicated(call: OpCall, size: int) -> list[Strategy]:
    """Operators that every process runs on the whole tensors."""
    return []


__all__ = ["cat", "gather", "stack"]
