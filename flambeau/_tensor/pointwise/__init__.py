"""Pointwise functions of tensors."""
