"""`torch._subclasses.meta_utils`: conversion of tensors to meta tensors, the same one for the same tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from .._tensor.meta import is_meta, reserved_like
from .._tensor.overriding.dispatch import without_handlers
from .._tensor.tensor import wrap
from ..backends.elementless_array import without_elements
from ..utils.weak import WeakIdKeyDictionary


class MetaConverter:
    """Converts tensors to meta tensors.

    Attributes:
        hit: the number of tensors that were converted.
        miss: the number of those that could not be: sparse and nested ones.

    >>> import flambeau as torch
    >>> from flambeau._subclasses.meta_utils import MetaConverter
    >>> convert = MetaConverter()
    >>> convert(torch.ones(2))
    tensor(..., device='meta', size=(2,))
    >>> convert.successful()
    True
    """

    def __init__(self, *, copy_data: bool = False) -> None:
        self.copy_data = copy_data
        self.hit = self.miss = 0
        self._converted = WeakIdKeyDictionary()

    def __call__(self, t: Any, shape_env: Any = None, *, callback: Any = None, **settings: Any) -> Any:
        if not isinstance(t, Tensor) or is_meta(t):
            return t
        if is_sparse_any(t) or t.is_nested:
            self.miss += 1
            return NotImplemented
        self.hit += 1
        found = self._converted.get(t)
        if found is not None:
            return found
        with without_handlers():
            out = wrap(without_elements(reserved_like(t._array)))
        if t._requires_grad:
            out.requires_grad_()
        self._converted[t] = out
        return out

    def successful(self) -> bool:
        """Whether tensors were converted, all of them."""
        return self.hit > 0 and self.miss == 0


def is_sparse_any(t: Any) -> bool:
    """Whether a tensor has a sparse layout."""
    from ..devices import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr

    return isinstance(t, Tensor) and t.layout in (sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)


def is_sparse_coo(t: Any) -> bool:
    """Whether a tensor has the layout `sparse_coo`."""
    from ..devices import sparse_coo

    return isinstance(t, Tensor) and t.layout is sparse_coo


def assert_eq(a: Any, b: Any) -> None:
    """Check that two values are equal.

    Raises:
        AssertionError: they are not.
    """
    if a != b:
        raise AssertionError(f"{a} != {b}")


def assert_metadata_eq(assert_eq: Callable[[object, object], None], m1: Any, m2: Any, *, skip_symbolic: bool = False,
                       skip_leaf: bool = False) -> None:
    """Compare what two tensors are, not what they hold: their own data, their gradients' and their bases'.

    Args:
        assert_eq: compares two values.
        skip_symbolic: leave out shapes, strides and offsets.
        skip_leaf: leave out whether they are leaves.

    Raises:
        AssertionError: one is a view without a base.

    >>> import flambeau as torch
    >>> from flambeau._subclasses.meta_utils import assert_eq, assert_metadata_eq
    >>> assert_metadata_eq(assert_eq, torch.ones(2), torch.zeros(2))
    """
    names = ["dtype", "requires_grad", "is_sparse"]
    methods = ["is_inference", "is_conj", "is_neg"]
    if not skip_symbolic:
        names.append("shape")
    if not skip_leaf:
        names.append("is_leaf")
    sparse = is_sparse_any(m1)
    if sparse:
        names.append("layout")
        methods += ["dense_dim", "sparse_dim", *(["is_coalesced"] if is_sparse_coo(m1) else [])]
    else:
        methods += [*([] if skip_symbolic else ["stride", "storage_offset"]), "_is_view"]
    for name in names:
        assert_eq(getattr(m1, name), getattr(m2, name))
    for name in methods:
        assert_eq(getattr(m1, name)(), getattr(m2, name)())
    first, second = safe_grad(m1), safe_grad(m2)
    assert_eq(first is not None, second is not None)
    if first is not None:
        assert_metadata_eq(assert_eq, first, second, skip_symbolic=skip_symbolic, skip_leaf=skip_leaf)
    if not sparse and m1._is_view():
        if m1._base is None or m2._base is None:
            raise AssertionError(f"{'m1' if m1._base is None else 'm2'}._base must not be None for a view tensor")
        assert_metadata_eq(assert_eq, m1._base, m2._base, skip_symbolic=skip_symbolic, skip_leaf=skip_leaf)


def safe_grad(t: Any) -> Any:
    """The gradient of a tensor; None, without a warning, for results of operators that keep none."""
    return t.grad if t.is_leaf or t.retains_grad else None


__all__ = ["MetaConverter", "assert_eq", "assert_metadata_eq", "is_sparse_any", "is_sparse_coo", "safe_grad"]
