"""Decompositions: composite operators and gradient rules as programs of fused kernels."""
