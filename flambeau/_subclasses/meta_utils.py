"""`torch._subclasses.meta_utils`: conversion of tensors to meta tensors, the same one for the same tensor."""

from __future__ import annotations

import weakref
from typing import Any

from .._tensor import Tensor
from .._tensor.meta import is_meta, mark_meta, untouched
from .._tensor.overriding.dispatch import without_handlers
from .._tensor.tensor import wrap


class MetaConverter:
    """Converts tensors to meta tensors.

    >>> import flambeau as torch
    >>> from flambeau._subclasses.meta_utils import MetaConverter
    >>> MetaConverter()(torch.ones(2))
    tensor(..., device='meta', size=(2,))
    """

    def __init__(self, *, copy_data: bool = False) -> None:
        self.copy_data = copy_data
        self._converted: dict[int, tuple[weakref.ref[Any], Any]] = {}

    def __call__(self, t: Any, shape_env: Any = None, *, callback: Any = None, **settings: Any) -> Any:
        if not isinstance(t, Tensor) or is_meta(t):
            return t
        found = self._converted.get(id(t))
        if found is not None and found[0]() is t:
            return found[1]
        with without_handlers():
            out = mark_meta(wrap(untouched(t._array)))
        if t._requires_grad:
            out.requires_grad_()
        self._converted[id(t)] = (weakref.ref(t), out)
        return out


def is_sparse_any(t: Any) -> bool:
    """Whether a tensor has a sparse layout."""
    from ..devices import strided

    return t.layout is not strided


def is_sparse_coo(t: Any) -> bool:
    """Whether a tensor has the layout `sparse_coo`."""
    from ..devices import sparse_coo

    return t.layout is sparse_coo


def assert_eq(a: Any, b: Any) -> None:
    """Check that two values are equal.

    Raises:
        AssertionError: they are not.
    """
    if a != b:
        raise AssertionError(f"{a} != {b}")


__all__ = ["MetaConverter", "assert_eq", "is_sparse_any", "is_sparse_coo"]
