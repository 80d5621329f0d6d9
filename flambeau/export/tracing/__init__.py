"""The trace of an export: calls of public functions become nodes of PyTorch's operators, before they are decomposed."""
