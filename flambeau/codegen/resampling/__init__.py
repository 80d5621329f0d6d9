"""Kernels of resampling: sums over weighted taps along one dimension."""
