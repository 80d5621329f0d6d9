"""Kernel construction: fusion groups and extern values as launches, and the cost of kernels."""
