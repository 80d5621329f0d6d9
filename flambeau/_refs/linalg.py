"""`torch._refs.linalg`: the functions of `torch.linalg`."""

from __future__ import annotations

from typing import Any

from .. import linalg as _functions

_NAMES = """
    cross diagonal matrix_norm norm svd svdvals vecdot vector_norm
""".split()  # noqa: SIM905
__all__ = [*_NAMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    return getattr(_functions, name)
