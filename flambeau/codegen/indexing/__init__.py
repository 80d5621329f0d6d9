"""Gather and scatter kernels."""
