"""What `torchrun` and its programs share: ports, logs, samplers."""
