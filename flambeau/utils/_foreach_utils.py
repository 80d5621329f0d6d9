"""Lists of tensors grouped by device and dtype, and the devices and types of `torch._foreach_*`."""

from __future__ import annotations

from typing import Any, TypeAlias

from .._tensor import Tensor
from ..optim.step_implementations import (
    _get_foreach_kernels_supported_devices as _get_foreach_kernels_supported_devices,
)
from ..optim.step_implementations import (
    _get_fused_kernels_supported_devices as _get_fused_kernels_supported_devices,
)
from ..optim.tensor_groups import _group_tensors_by_device_and_dtype as _group_tensors_by_device_and_dtype

TensorListList: TypeAlias = list[list[Tensor | None]]
Indices: TypeAlias = list[int]
_foreach_supported_types = [Tensor]


def _device_has_foreach_support(device: Any) -> bool:
    return device.type in [*_get_foreach_kernels_supported_devices(), "cpu"]


def _has_foreach_support(tensors: list[Any], device: Any) -> bool:
    return _device_has_foreach_support(device) and all(t is None or type(t) in _foreach_supported_types
                                                       for t in tensors)
