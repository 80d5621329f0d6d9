"""Row kernels: reductions over rows in several passes, fused with elementwise results."""
