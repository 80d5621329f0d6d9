"""`torch.jit.annotations`: the types of TorchScript's annotations."""

from __future__ import annotations

from typing import Any, Optional, Union

from .._tensor import Tensor
from .modifiers import (
    BroadcastingList1,
    BroadcastingList2,
    BroadcastingList3,
    BroadcastingList4,
    BroadcastingList5,
    BroadcastingList6,
    BroadcastingListCls,
    is_final,
)

Dict, List, Tuple = dict, list, tuple
int, float, bool, str = int, float, bool, str  # TorchScript's annotations are looked up here

__all__ = ["Any", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "BroadcastingList4",
           "BroadcastingList5", "BroadcastingList6", "BroadcastingListCls", "Dict", "List", "Optional", "Tensor",
           "Tuple", "Union", "is_final"]
