"""Lowering for GPUs only: primitives whose kernels the CPU has in another form, in NumPy or in loops of its own."""
