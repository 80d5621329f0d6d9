"""`torch.utils.backend_registration`: devices that extensions add, which are refused."""

from __future__ import annotations

from ..environment.left_out import refusing_function

_REASON = "flambeau computes on the CPU; no extension can add a device"
rename_privateuse1_backend = refusing_function("torch.utils.rename_privateuse1_backend", _REASON)
generate_methods_for_privateuse1_backend = refusing_function(
    "torch.utils.generate_methods_for_privateuse1_backend", _REASON)

__all__ = ["generate_methods_for_privateuse1_backend", "rename_privateuse1_backend"]
