"""Stub for the few names that tests take from PyTorch's operator samples."""

from __future__ import annotations

from typing import Any

import torch

op_db: list[Any] = []
reduction_ops: list[Any] = []
sparse_unary_ufuncs: list[Any] = []
sparse_masked_reduction_ops: list[Any] = []
binary_ufuncs: list[Any] = []


def mask_not_all_zeros(shape: Any) -> Any:
    """A random mask of which at least one value is true."""
    while True:
        mask = torch.randn(shape).gt(0)
        if mask.any():
            return mask
