"""PyTorch's modules of devices. The CPU is the only device; the others answer as in a build of PyTorch without them."""
