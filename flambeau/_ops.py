"""`torch._ops`: the classes of `torch.ops`."""

from __future__ import annotations

from . import ops
from .ops.function_operators import HigherOrderOperator
from .ops.overloads import OpNamespace as _OpNamespace
from .ops.overloads import OpOverload, OpOverloadPacket

__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket", "_OpNamespace", "ops"]
