"""What `torch.utils.checkpoint` is made of: recomputation, selective policies, logs of operators."""
