"""`torch._weights_only_unpickler`: the unpickler of `load(weights_only=True)`, and the globals that it allows."""

from __future__ import annotations

from typing import Any

from .safe_globals import added_globals as _get_user_allowed_globals
from .safe_globals import clear_safe_globals as _clear_safe_globals
from .safe_globals import default_globals
from .safe_globals import get_safe_globals as _get_safe_globals
from .safe_globals import safe_globals as _safe_globals
from .weights_unpickler import Unpickler, globals_in, load


def _add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow globals; an item is one, or a pair of it and its full name."""
    from .safe_globals import add_safe_globals

    add_safe_globals(safe_globals)


def _get_allowed_globals() -> dict[str, Any]:
    """Full name -> global that is always allowed."""
    return dict(default_globals())


def get_globals_in_pkl(file: Any) -> set[str]:
    """The full names of the globals in a pickle, which is read to its end and not executed.

    Raises:
        UnpicklingError: it has an instruction that the unpickler refuses.
    """
    return globals_in(file.read())


__all__ = ["Unpickler", "_clear_safe_globals", "_get_safe_globals", "_get_user_allowed_globals", "_safe_globals",
           "get_globals_in_pkl", "load"]
