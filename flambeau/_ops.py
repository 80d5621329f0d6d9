"""`torch._ops`: the classes of `torch.ops`."""

from __future__ import annotations

from . import ops
from .ops.overloads import OpNamespace as _OpNamespace
from .ops.overloads import OpOverload, OpOverloadPacket


class HigherOrderOperator:
    """An operator of functions; flambeau has none."""


__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket", "_OpNamespace", "ops"]
