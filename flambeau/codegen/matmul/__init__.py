"""Matrix multiplication kernels: cache blocking, packing, microkernels and fused epilogues."""
