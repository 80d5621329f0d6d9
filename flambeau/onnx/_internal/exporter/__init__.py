"""`torch.onnx._internal.exporter`: empty; packages look for the module."""
