"""Elementwise kernels: expressions computed for every element of broadcast arrays."""
