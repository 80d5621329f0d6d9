"""Indexing, masking, gather and scatter on arrays."""
