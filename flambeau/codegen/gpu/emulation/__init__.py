"""Execution of kernel IR on the CPU, with checks."""
