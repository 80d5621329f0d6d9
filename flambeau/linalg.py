"""Linear algebra under `torch.linalg`'s names. Names only."""

from __future__ import annotations

from typing import Any

from ._tensor import functions
from ._tensor.linalg.decompositions import LinAlgError as LinAlgError


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        found = getattr(functions, "linalg_" + name, None)
        if found is not None:
            globals()[name] = found
            return found
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(name.removeprefix("linalg_") for name in dir(functions) if name.startswith("linalg_"))
