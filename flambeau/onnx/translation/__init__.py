"""The translation of PyTorch's operators to those of ONNX."""
