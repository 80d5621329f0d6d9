"""Symbolic shapes: plans and programs that serve arrays of new extents."""
