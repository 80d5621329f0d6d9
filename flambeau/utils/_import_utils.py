"""`torch.utils._import_utils`: whether packages can be imported."""

from __future__ import annotations

import functools
import importlib.util


@functools.cache
def _check_module_exists(name: str) -> bool:
    """Whether a package can be imported."""
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


def dill_available() -> bool:
    """Whether dill can be imported."""
    return _check_module_exists("dill")


def import_dill() -> object | None:
    """The module dill, or None."""
    return importlib.import_module("dill") if dill_available() else None
