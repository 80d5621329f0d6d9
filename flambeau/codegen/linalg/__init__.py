"""Kernels of dense linear algebra beyond products: factorizations and substitutions."""
