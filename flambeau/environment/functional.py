"""`torch.functional`: the functions of `torch` that PyTorch writes in Python."""

from __future__ import annotations

import importlib
from typing import Any

from .._tensor import functions

_NAMES = ("atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors",
          "cartesian_prod", "cdist", "chain_matmul", "einsum", "istft", "lu", "meshgrid", "norm", "pca_lowrank",
          "split", "stft", "svd_lowrank", "tensordot", "unique", "unique_consecutive", "unravel_index")


def __getattr__(name: str) -> Any:
    if name in _NAMES and hasattr(functions, name):
        return getattr(functions, name)
    if name == "F":  # PyTorch's module imports it under this name
        return importlib.import_module("..nn.functional", __package__)
    raise AttributeError(f"module 'torch.functional' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(_NAMES)
