"""Random number kernels: the Mersenne Twister and random permutations."""
