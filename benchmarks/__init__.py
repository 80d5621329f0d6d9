"""Benchmarks: time and memory of flambeau compared with its peers."""
