"""Symbolic shapes: one template of a compiled function's programs for all sizes of its arguments."""
