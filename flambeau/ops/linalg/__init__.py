"""Declarations of linear algebra operators."""
