"""`torch.cuda.tunable`: the tuning of GPU kernels, which are absent."""

from __future__ import annotations

from ..accelerators.absent import refusing

is_enabled = enable = tuning_is_enabled = tuning_enable = refusing(
    AttributeError, "module 'torch._C' has no attribute '_cuda_tunableop_is_enabled'")
