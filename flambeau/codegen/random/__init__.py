"""Random number kernels: the Mersenne Twister and what it draws, and Philox."""
