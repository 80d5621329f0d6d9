"""Declarations of neural network operators."""
