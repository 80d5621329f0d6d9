"""Timings and memory of flambeau beside its peers."""
