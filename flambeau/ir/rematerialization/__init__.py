"""Rematerialization: values of the forward part that a backward part computes again instead of keeping them."""
