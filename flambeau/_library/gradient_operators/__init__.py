"""Operators that are the gradient of another one, `torch.ops.aten.hardtanh_backward`: their kernels by overload."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..shown_operators import shown_to_handlers
from . import activations, losses, normalization, products, resampling, shapes

#: "aten.name.overload" -> function with the schema's arguments
KERNELS: dict[str, Callable[..., Any]] = {
    name: shown_to_handlers(name.replace(".", "::", 1).removesuffix(".default"), kernel)
    for part in (activations, losses, normalization, products, resampling, shapes)
    for name, kernel in part.KERNELS.items()}

__all__ = ["KERNELS"]
