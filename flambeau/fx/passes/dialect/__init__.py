"""Passes of one operator set."""
