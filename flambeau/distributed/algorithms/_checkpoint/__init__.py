"""Modules whose activations are recomputed, or kept elsewhere, until the backward pass."""
