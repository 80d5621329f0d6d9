"""Linear algebra functions of tensors."""
