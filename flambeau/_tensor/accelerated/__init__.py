"""Tensors in a device's memory: operators, writes, transfers, factories and random numbers.

It is imported when a CUDA device is first asked for, and knows of the backend only what `backends.cuda_devices` offers.
While there is a runtime, operators take the path that asks handlers (`overriding.dispatched`), and public functions ask
`calls.called_on_device`: as for meta tensors, no other operator pays for it.
"""

from __future__ import annotations

from ... import devices
from ...backends.cuda_devices import current_runtime, resolve
from . import (  # noqa: F401
    calls,
    dlpack,
    draws,
    execution,
    factories,
    generators,
    reads,
    transfers,
    updates,
)
from .recorded import call_table  # noqa: F401

devices.cuda_resolver[0] = resolve

__all__ = ["current_runtime", "resolve"]
