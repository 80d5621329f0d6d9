"""Passes of any operator set."""
