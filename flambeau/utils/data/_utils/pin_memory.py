"""Pinning of the tensors of a batch, which needs an accelerator."""

from __future__ import annotations

import queue
from collections.abc import Mapping, Sequence
from typing import Any

from ...._tensor.tensor import Tensor
from ....runtime.exception_wrapper import ExceptionWrapper
from . import MP_STATUS_CHECK_INTERVAL
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


def _pin_memory_loop(in_queue: Any, out_queue: Any, device_id: Any, done_event: Any, device: Any) -> None:
    """Pass the batches of a queue on, pinned, until the event is set: the loop of a loader's thread."""
    while not done_event.is_set():
        try:
            number, data = in_queue.get(timeout=MP_STATUS_CHECK_INTERVAL)
        except queue.Empty:
            continue
        if not isinstance(data, ExceptionWrapper):
            try:
                data = pin_memory(data, device)
            except Exception:
                data = ExceptionWrapper(where=f"in pin memory thread for device {device_id}")
        while not done_event.is_set():
            try:
                out_queue.put((number, data), timeout=MP_STATUS_CHECK_INTERVAL)
                break
            except queue.Full:
                continue
        del number, data  # memory is free while the thread waits
