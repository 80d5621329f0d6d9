"""Functions that index, join, copy and reshape tensors."""
