"""`torch.onnx.symbolic_opset12`: names of TorchScript's exporter, which refuse."""

from __future__ import annotations

from .left_out_names import refusing

globals().update(refusing("symbolic_opset12", "dropout"))
