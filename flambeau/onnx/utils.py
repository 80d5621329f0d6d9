"""`torch.onnx.utils`: the older place of `export`."""

from __future__ import annotations

from .exporting import export, is_in_onnx_export

__all__ = ["export", "is_in_onnx_export"]
