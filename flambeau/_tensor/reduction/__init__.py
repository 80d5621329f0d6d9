"""Reductions, scans and orderings of tensors."""
