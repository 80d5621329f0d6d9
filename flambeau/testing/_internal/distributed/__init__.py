"""`torch.testing._internal.distributed`: process groups of one process, for tests."""
