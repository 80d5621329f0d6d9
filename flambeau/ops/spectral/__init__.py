"""Declarations of Fourier transforms."""

from . import fourier as fourier
