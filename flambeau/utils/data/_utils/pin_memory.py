"""Pinning of the tensors of a batch, which needs an accelerator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...._tensor.tensor import Tensor
from .containers import is_namedtuple, rebuild_mapping, rebuild_sequence


def pin_memory(data: Any, device: Any = None) -> Any:
    """A batch whose tensors, and objects with a method `pin_memory`, are pinned.

    Raises:
        RuntimeError: it contains a tensor: there is no accelerator.
    """
    if isinstance(data, Tensor) or hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return rebuild_mapping(data, lambda key: pin_memory(data[key], device))
    if is_namedtuple(data):
        return type(data)(*(pin_memory(sample, device) for sample in data))
    if isinstance(data, tuple):
        return type(data)(pin_memory(sample, device) for sample in data)
    if isinstance(data, Sequence):
        return rebuild_sequence(data, data, lambda sample: pin_memory(sample, device))
    return data
