"""Scheduling: the order of kernels, memory planning, and programs that run them."""
