"""Declarations of reductions, scans, sorting and statistics."""
