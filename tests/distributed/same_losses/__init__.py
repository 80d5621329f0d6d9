"""Losses of training in several processes beside those of one process and of PyTorch on gloo, for every strategy."""
