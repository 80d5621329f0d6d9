"""Scan kernels: cumulative sums, products, extrema and linear recurrences."""
