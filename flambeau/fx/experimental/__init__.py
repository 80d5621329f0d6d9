"""Experiments of `torch.fx`: operator traces, constant folding, normal forms."""
