"""Saved tensors: packing hooks, version checks, and the errors of values modified in place."""
