"""Scalar IR: hash-consed expressions of one element, and the reductions over them."""
