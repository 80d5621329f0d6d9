"""The distributed scripts of pytorch/examples, unchanged, under flambeau and PyTorch on CPUs."""
