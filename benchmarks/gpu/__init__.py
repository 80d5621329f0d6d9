"""Benchmarks on a GPU beside PyTorch and jax: the workloads of the table, GPT-2 small, and single operators."""
