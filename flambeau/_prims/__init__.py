"""`torch._prims`: the operators that others are made of, without promotion and broadcasting, named as PyTorch does.

They are those of `torch.ops.prims`. Here nothing is made of them.
"""

from __future__ import annotations

import importlib
from typing import Any

from .. import _prims_common as utils  # noqa: F401 (PyTorch's name for it)
from .._prims_common import RETURN_TYPE
from .implementations import NAMES, implementation

_MODULES = ("context", "executor")

__all__ = ["RETURN_TYPE", *NAMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in NAMES:
        from ..ops.overloads import namespace_of
        from .operators import define

        define()
        packet = namespace_of("prims")._packets.get(name)
        return implementation(name) if packet is None else packet.default
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
