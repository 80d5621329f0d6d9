"""Fusion: which values one kernel computes, and the order of fusion groups."""
