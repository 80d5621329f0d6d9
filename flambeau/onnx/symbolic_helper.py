"""`torch.onnx.symbolic_helper`: names of TorchScript's exporter."""

from __future__ import annotations

from typing import Any

from .left_out_names import refusing, undecorated

parse_args = undecorated
cast_pytorch_to_onnx: dict[str, Any] = {}
globals().update(refusing("symbolic_helper", "_get_tensor_sizes"))
