"""Operators that a program defines: schemas from type hints, kernels, and how a call runs."""
