"""Random numbers: all processes draw those of the whole tensor, and keep their part.

So a tensor has the same elements however it is placed, and those that one process draws, as long as all processes have
the same generator state.
"""

from __future__ import annotations

from typing import Any

from ....ops.declare import REGISTRY
from ...placement_types import Partial
from .._dtensor_spec import DTensorSpec
from .._sharding import local_shape_and_offset
from .pointwise import broadcast_shards
from .strategy import OpCall, Strategy, rule


def local_part(array: Any, spec: DTensorSpec) -> Any:
    """A process's part of an array or tensor that all have."""
    mesh = spec.mesh
    sizes, offsets = local_shape_and_offset(array.shape, mesh.shape, mesh.get_coordinate(), spec.placements)
    return array[tuple(slice(o, o + n) for o, n in zip(offsets, sizes, strict=True))]


def _localize(call: OpCall, inputs: list[Any], outputs: list[DTensorSpec]) -> dict[str, Any]:
    values = call.params["values"]
    if not hasattr(values, "shape") or tuple(values.shape) != tuple(inputs[0].shape):
        return call.params
    return {**call.params, "values": local_part(values, inputs[0]).copy()}


@rule(*(key for key, op in REGISTRY.items() if op.params == ("values",)), localize=_localize)
def drawn(call: OpCall, size: int) -> list[Strategy]:
    """Numbers that were drawn for the whole tensor; of a sum, one process has them."""
    return [each for each in broadcast_shards(call) if not isinstance(each.outputs[0], Partial)]


__all__ = ["drawn", "local_part"]
