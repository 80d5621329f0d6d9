"""`torch.cuda.streams`: the classes of streams and events of GPUs."""

from __future__ import annotations

from . import Event, ExternalStream, Stream

__all__ = ["Event", "ExternalStream", "Stream"]
