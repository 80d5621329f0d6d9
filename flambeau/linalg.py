"""`torch.linalg`: the names of functions `linalg_*`, without the prefix."""

from __future__ import annotations

from typing import Any

from ._tensor import functions
from ._tensor.linalg.decompositions import LinAlgError as LinAlgError


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        function = getattr(functions, "linalg_" + name, None)
        if function is not None:
            globals()[name] = function
            return function
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(name.removeprefix("linalg_") for name in dir(functions) if name.startswith("linalg_"))
