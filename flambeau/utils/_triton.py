"""`torch.utils._triton`: whether Triton, the compiler of GPU kernels, is usable."""

from __future__ import annotations


def has_triton(*args: object) -> bool:
    """Whether Triton is usable: False, there is no GPU."""
    return False


has_triton_package = has_triton_tma = has_triton_tma_device = has_triton
