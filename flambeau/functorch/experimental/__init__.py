"""The names of `functorch.experimental`."""

from __future__ import annotations

from ...func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_
from . import control_flow
from .chunks import chunk_vmap

__all__ = ["chunk_vmap", "control_flow", "functionalize", "hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_"]
