"""Kernels of `grid_sample`: interpolation of images at the points of a grid, and its gradients."""
