"""Running kernels on a GPU by the CUDA driver."""
