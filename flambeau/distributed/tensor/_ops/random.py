"""Random numbers: on a mesh of CPUs each process draws those of its part from its own generator, as in PyTorch.

Processes with the same generator state draw the same numbers for parts that differ; seeds of the ranks make them
different. On devices with counter-based generators, `tensor._random` moves the offsets.
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
    shape = getattr(values, "shape", None)
    if shape is None or shape == inputs[0].local_shape() or shape != tuple(inputs[0].shape):
        return call.params
    return {**call.params, "values": local_part(values, inputs[0]).copy()}


@rule(*(key for key, op in REGISTRY.items() if op.params == ("values",)), localize=_localize)
def drawn(call: OpCall, size: int) -> list[Strategy]:
    """Numbers that were drawn; a sum is completed before."""
    return [each for each in broadcast_shards(call) if not isinstance(each.outputs[0], Partial)]


__all__ = ["drawn", "local_part"]
