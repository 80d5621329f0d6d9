"""`torch.onnx.symbolic_opset9`: names of TorchScript's exporter, which refuse."""

from __future__ import annotations

from .left_out_names import refusing

globals().update(refusing("symbolic_opset9", "masked_fill", "softmax"))
