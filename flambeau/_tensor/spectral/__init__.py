"""Fourier transforms, the short-time Fourier transform and window functions."""
