"""State dicts: copies, parts of tensors, names of wrapped modules, states of optimizers."""
