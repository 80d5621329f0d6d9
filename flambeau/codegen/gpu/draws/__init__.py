"""Kernels that draw random numbers: those of PyTorch on NVIDIA's GPUs, by thread, subsequence and offset."""
