"""Stub for the module whose names for nested containers are those of `torch.utils._pytree`."""

from __future__ import annotations

from torch.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["tree_flatten", "tree_unflatten"]
