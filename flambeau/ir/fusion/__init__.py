"""Fusion: groups of values that are computed by one kernel."""
