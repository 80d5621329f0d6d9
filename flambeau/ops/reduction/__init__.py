"""Declarations of reductions, scans and orderings."""
