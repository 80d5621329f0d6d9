"""Pooling and batch normalization: examples and channels may be cut."""

from __future__ import annotations

from typing import Any

from ...placement_types import Shard
from .._dtensor import DTensor
from .._dtensor_spec import DTensorSpec
from .._sharding import row_major_strides
from .strategy import OpCall, Strategy, rule


def _leading(call: OpCall, dims: int) -> list[Strategy]:
    """Every input cut along one of the dimensions before the last `dims`."""
    return [call.strategy(dict.fromkeys(call.tensors(), Shard(d)), Shard(d)) for d in range(len(call.shape(0)) - dims)]


@rule("_max_pool2d", "_avg_pool2d", "_adaptive_avg_pool2d", "_adaptive_max_pool2d")
def planes(call: OpCall, size: int) -> list[Strategy]:
    """Windows of planes (..., H, W)."""
    return _leading(call, 2)


@rule("_max_pool3d", "_avg_pool3d", "_adaptive_avg_pool3d", "_adaptive_max_pool3d")
def volumes(call: OpCall, size: int) -> list[Strategy]:
    """Windows of volumes (..., D, H, W)."""
    return _leading(call, 3)


def _positions(call: OpCall) -> int:
    size = call.params.get("kernel_size") or call.params.get("output_size")
    return len(size)  # type: ignore[arg-type]


@rule("_avg_pool_backward", "_adaptive_avg_pool_backward")
def average_backward(call: OpCall, size: int) -> list[Strategy]:
    """The derivative of averages of windows."""
    return _leading(call, _positions(call))


def _scattered(specs: list[Any], params: dict[str, Any]) -> list[Any]:
    return [(tuple(specs[1].shape), row_major_strides(specs[1].shape), specs[0].dtype)]


def _gathered(specs: list[Any], params: dict[str, Any]) -> list[Any]:
    index, dims = params["index"], params["dims"]
    shape = (*specs[0].shape[:-dims], *index.shape[index.ndim - dims:])
    return [(shape, row_major_strides(shape), specs[0].dtype)]


@rule("_gather_planes", exclusive=True, outputs=_gathered)
@rule("_scatter_planes", exclusive=True, outputs=_scattered)
def at_positions(call: OpCall, size: int) -> list[Strategy]:
    """Elements at positions that each process found in its part, so that parts must be the same again.

    Where the positions are of whole planes, all is replicated.
    """
    found = tuple(call.params["index"].shape)
    whole = call.shape(0) if call.op.name == "_scatter_planes" else call.outputs[0][0]
    same = [d for d in range(len(whole)) if found[d] != whole[d]]
    return [call.strategy(dict.fromkeys(call.tensors(), Shard(d)), Shard(d)) for d in same]


def _statistics(call: OpCall, inputs: list[Any], outputs: list[DTensorSpec]) -> dict[str, Any]:
    return {name: value._local_tensor if isinstance(value, DTensor) else value for name, value in call.params.items()}


@rule("_batch_norm", localize=_statistics)
def batch_norm(call: OpCall, size: int) -> list[Strategy]:
    """A norm of each channel over all examples: channels may be cut where there are no running statistics."""
    if call.params.get("running_mean") is not None:
        return []
    vectors = {i: Shard(0) for i in call.tensors() if i}
    return [call.strategy({0: Shard(1), **vectors}, Shard(1))]


__all__ = ["batch_norm", "planes"]
