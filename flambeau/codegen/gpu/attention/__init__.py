"""Attention without the matrix of scores: forward and backward."""
