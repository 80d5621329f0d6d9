"""`torch.onnx.operators`: names of TorchScript's exporter, which refuse."""

from __future__ import annotations

from .left_out_names import refusing

globals().update(refusing("operators", "reshape_from_tensor_shape", "shape_as_tensor"))
