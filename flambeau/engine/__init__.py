"""The autograd engine: graph nodes, saved tensors, and the backward pass."""
