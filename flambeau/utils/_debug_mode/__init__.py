"""`torch.utils._debug_mode`: a mode that logs what a program computes: operators, functions, modules."""

from __future__ import annotations

from ._calls import _DebugCall as _DebugCall
from ._calls import _get_call_name as _get_call_name
from ._calls import _NNModuleCall as _NNModuleCall
from ._calls import _OpCall as _OpCall
from ._calls import hash_tensor_fn, norm_hash_fn
from ._mode import DebugMode, get_active_debug_mode

__all__ = ["DebugMode", "get_active_debug_mode", "hash_tensor_fn", "norm_hash_fn"]
