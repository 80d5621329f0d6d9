"""Compiled functions whose tensors are in a device's memory: traced as on the CPU, replayed as launches of kernels."""
