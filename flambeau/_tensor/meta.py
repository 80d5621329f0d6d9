"""Meta tensors: tensors of the device "meta", which have shape, dtype and strides, but no elements.

Their array is a `MetaArray` (`backends.elementless_array`). The metadata of an operator's result is inferred
(`shape.inference`), and the result is a meta tensor again; in-place operators write nothing.
"""

from __future__ import annotations

from typing import Any

from ..backends.elementless_array import (
    NO_DATA,
    ElementlessArray,
    MetaArray,
    meta_array,
    reserved,
    reserved_like,
    without_elements,
)


def is_meta(x: Any) -> bool:
    """Whether a value is a meta tensor."""
    return getattr(x, "_array", None).__class__ is MetaArray


def lacks_elements(x: Any) -> bool:
    """Whether a value is a tensor without elements: a meta tensor, or one of a class that has none."""
    return isinstance(getattr(x, "_array", None), ElementlessArray) or getattr(type(x), "_lacks_elements", False)


_NO_KERNEL = (
    "aten::{}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel registered. "
    "You may have run into this message while using an operator with PT2 compilation APIs "
    "(torch.compile/torch.export); in order to use this operator with those APIs you'll need to add a fake impl. "
    "Please see the following for next steps:  https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html")


def no_meta_kernel(operator: str) -> NotImplementedError:
    """The error of an operator that PyTorch does not run on meta tensors."""
    return NotImplementedError(_NO_KERNEL.format(operator))


def mark_meta(x: Any) -> Any:
    """Make a tensor a meta tensor on the addresses that it has; the tensor."""
    x._array = without_elements(x._array)
    return x


def make_meta(x: Any) -> Any:
    """Make a tensor a meta tensor, and give up its elements; the tensor."""
    a = x._array
    if a.__class__ is not MetaArray:
        x._array = without_elements(reserved_like(a))
    return x


__all__ = ["NO_DATA", "MetaArray", "is_meta", "lacks_elements", "make_meta", "mark_meta", "meta_array",
           "no_meta_kernel", "reserved", "reserved_like"]
