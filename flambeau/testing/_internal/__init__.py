"""`torch.testing._internal`: what packages' own tests take from the tests of PyTorch."""
