"""What `torch.utils._pytree` is made of: paths, the registration of types, specs as JSON."""
