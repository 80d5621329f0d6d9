"""`torch._dynamo.backends`: the registry of compiler backends under PyTorch's names."""

from . import registry as registry
