"""Elementwise functions that expressions cannot say: those with loops, and those of the bits of floats."""
