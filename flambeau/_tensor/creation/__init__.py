"""Tensor factories."""
