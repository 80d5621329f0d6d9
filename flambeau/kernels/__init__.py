"""NumPy kernels: array operations that NumPy lacks, or computes too slowly."""
