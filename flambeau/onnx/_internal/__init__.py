"""`torch.onnx._internal`: empty; packages look for the module."""
