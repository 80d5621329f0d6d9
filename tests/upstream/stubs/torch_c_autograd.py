"""Stub for the private names of PyTorch's engine."""

from __future__ import annotations

from typing import Any

import torch

from ..placeholder import Placeholder


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether saved-tensor hooks may be used."""
    from flambeau.engine.saved.saved_tensors import disabled_message

    return disabled_message() is None


def __getattr__(name: str) -> Any:
    if name == "SavedTensor":
        x = torch.ones(2, requires_grad=True)
        return type((x * x).grad_fn._raw_saved_self)
    if name.startswith("__"):
        raise AttributeError(name)
    return Placeholder(f"torch._C._autograd.{name}", internal=True)
