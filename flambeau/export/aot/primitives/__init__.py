"""Primitives of programs compiled ahead of time alone: in the process NumPy, or another kernel, is faster."""
