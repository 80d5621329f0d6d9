"""Symbolic shapes: shape signatures, and plans that serve arrays of other extents."""
