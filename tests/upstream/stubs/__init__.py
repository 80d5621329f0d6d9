"""Small replacements for what PyTorch's test files import from PyTorch's own test machinery."""
