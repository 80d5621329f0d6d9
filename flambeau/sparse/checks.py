"""The setting whether constructors of sparse tensors check their invariants."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._tensor.sparse.invariants import enabled


class check_sparse_tensor_invariants:
    """Whether constructors of sparse tensors check their arguments: a context manager, a decorator, and functions.

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.check_sparse_tensor_invariants.html

    Args:
        enable: the state inside the block.

    >>> import flambeau as torch
    >>> with torch.sparse.check_sparse_tensor_invariants():
    ...     torch.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    """

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """Whether constructors check invariants by default.

        >>> import flambeau as torch
        >>> torch.sparse.check_sparse_tensor_invariants.is_enabled()
        False
        """
        return bool(enabled[0])

    @staticmethod
    def enable() -> None:
        """Check invariants from now on."""
        enabled[0] = True

    @staticmethod
    def disable() -> None:
        """Do not check invariants from now on."""
        enabled[0] = False

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError("This context manager instance is already activated. Use a different context manager "
                               "instance for context nesting.")
        self.saved_state = self.is_enabled()
        enabled[0] = bool(self.state)

    def __exit__(self, *exception: object) -> None:
        if self.saved_state is None:
            raise AssertionError("saved_state should not be None on exit")
        enabled[0] = self.saved_state
        self.saved_state = None

    def __call__(self, mth: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(mth)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return mth(*args, **kwargs)

        return checked


__all__ = ["check_sparse_tensor_invariants"]
