"""`torch._functorch.apis`: transforms under another name."""

from __future__ import annotations

from ...func import grad, grad_and_value, vmap
from ...functorch.experimental.chunks import chunk_vmap

__all__ = ["chunk_vmap", "grad", "grad_and_value", "vmap"]
