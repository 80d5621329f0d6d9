"""Execution: guarded dispatch, replay, and backward of compiled functions."""
