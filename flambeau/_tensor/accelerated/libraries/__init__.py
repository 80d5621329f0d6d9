"""Operators on a device whose primitives are functions of NVIDIA's libraries: Fourier transforms, linear algebra."""
