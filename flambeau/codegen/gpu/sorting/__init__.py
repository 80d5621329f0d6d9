"""Sorts, selections, ranks and searches."""
