"""Layers that the files with PyTorch's names in the parent package re-export."""
