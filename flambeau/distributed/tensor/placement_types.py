"""`torch.distributed.tensor.placement_types`: how a tensor is placed on a mesh."""

from __future__ import annotations

from ..placement_types import Partial, Placement, Replicate, Shard, _StridedShard
from ._dtensor_spec import DTensorSpec, TensorMeta
from ._partial import _NormPartial

__all__ = ["DTensorSpec", "Partial", "Placement", "Replicate", "Shard", "TensorMeta", "_NormPartial", "_StridedShard"]
