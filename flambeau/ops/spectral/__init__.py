"""Declarations of Fourier transforms."""
