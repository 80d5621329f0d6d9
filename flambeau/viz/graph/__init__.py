"""The autograd graph as data: nodes, provenance, memory and leaks."""
