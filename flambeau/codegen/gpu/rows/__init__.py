"""Row kernels and reductions."""
