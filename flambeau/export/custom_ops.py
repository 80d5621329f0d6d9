"""`torch.export.custom_ops`: operators that exist for programs only."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from ..library import Library

__all__ = ["lib"]

lib = Library("export", "FRAGMENT")
lib.define("access_subclass_inner_tensor(Tensor src_subclass_tensor, str attr) -> Tensor")


def _access_subclass_inner_tensor(src_subclass_tensor: Any, attr: str) -> Any:
    if not hasattr(type(src_subclass_tensor), "__tensor_flatten__"):
        raise AssertionError(f"Expected src_subclass_tensor to be a traceable wrapper subclass, but got "
                             f"{type(src_subclass_tensor)}")
    value = getattr(src_subclass_tensor, attr, None)
    if not isinstance(value, torch.Tensor):
        raise RuntimeError(f"Attribute {attr} is not a tensor or doesn't exist in {src_subclass_tensor}")
    return value


lib.impl("access_subclass_inner_tensor", _access_subclass_inner_tensor, "CompositeImplicitAutograd")
