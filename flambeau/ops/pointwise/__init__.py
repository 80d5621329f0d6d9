"""Declarations of pointwise operators."""
