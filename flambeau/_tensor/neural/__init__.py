"""Neural network functions of tensors."""
