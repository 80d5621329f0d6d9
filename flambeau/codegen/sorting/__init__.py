"""Sorting kernels: radix sort, rank sort and top-k."""
