"""Convolution kernels: direct and Winograd, forward and backward."""
