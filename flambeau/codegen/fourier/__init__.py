"""Discrete Fourier transforms: `transforms` has the launches, `code` the code generation, `twiddles` the tables."""
