"""Evaluation, tangent and adjoint traces of programs, with formulas."""
