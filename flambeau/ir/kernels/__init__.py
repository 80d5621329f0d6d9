"""Kernel construction: fusion groups as scalar expressions, row kernels and extern launches."""
