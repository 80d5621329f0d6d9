"""Winograd convolution F(2 x 2, 3 x 3): tile and filter transforms, forward and weight gradient."""
