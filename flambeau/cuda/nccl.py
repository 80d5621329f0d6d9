"""`torch.cuda.nccl`: NVIDIA's collective operations, which are absent."""

from __future__ import annotations

import warnings
from typing import Any

from ..accelerators.absent import refusing

version = refusing(AttributeError, "module 'torch._C' has no attribute '_nccl_version'")


def is_available(tensors: Any) -> bool:
    """Whether collective operations on GPUs are available: False, with a warning."""
    warnings.warn("PyTorch is not compiled with NCCL support", stacklevel=2)
    return False
