"""Pooling kernels: maxima and means of windows, and their gradients."""
