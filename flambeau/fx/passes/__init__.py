"""Passes over graphs: shapes, splits, partitions, pattern matching."""
