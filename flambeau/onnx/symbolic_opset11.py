"""`torch.onnx.symbolic_opset11`: names of TorchScript's exporter, which refuse."""

from __future__ import annotations

from .left_out_names import refusing

globals().update(refusing("symbolic_opset11", "select", "squeeze", "unsqueeze"))
