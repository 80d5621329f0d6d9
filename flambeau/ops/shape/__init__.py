"""Declarations of views, copies, joins and indexing."""
