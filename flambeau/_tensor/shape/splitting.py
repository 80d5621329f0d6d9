"""Functions that split a tensor into slices, whose arguments a declaration cannot express."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...engine.grad_mode import grad_mode
from ...ops.declare import REGISTRY
from ...shapes import wrap_dim
from ..argument_errors.guards import NOT_GIVEN, raise_refusal, refused
from ..argument_errors.type_names import type_name
from ..dispatch.apply import apply
from ..dispatch.public_functions import public_function
from ..fastpath.known_views import known_views
from ..tensor import Tensor
from .reshaping import as_ints

__all__ = ["chunk", "dsplit", "hsplit", "slice_copy", "split", "split_copy", "split_with_sizes_copy", "tensor_split",
           "unbind_copy", "unsafe_chunk", "vsplit"]

@known_views
def split(tensor: Tensor, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None) -> Any:
    """Views of consecutive slices along a dimension, all of one size or of the given sizes.

    >>> import flambeau as torch
    >>> torch.split(torch.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    sizes = split_size if split_size_or_sections is None else split_size_or_sections
    if isinstance(sizes, (tuple, list)):
        try:
            return public_function(REGISTRY["split_with_sizes"])(tensor, as_ints(sizes, "split", "split_size"), dim=dim)
        except TypeError:
            _raise_unsplit("split_with_sizes", tensor, sizes, dim)
            raise
    try:
        size = sizes.__index__()
    except AttributeError:
        if sizes is None:
            raise TypeError("split() missing 1 required positional argument: 'split_size_or_sections'") from None
        raise TypeError("split_with_sizes(): argument 'split_sizes' (position 2) must be tuple of ints, not "
                        f"{type_name(sizes)}") from None
    try:
        return public_function(REGISTRY["_split"])(tensor, split_size=size, dim=dim)
    except TypeError:
        _raise_unsplit("split", tensor, size, dim)
        raise


def _raise_unsplit(name: str, *args: Any) -> None:
    """Raise the refusal of a call whose arguments PyTorch's `split` passes on by position, whatever its caller did."""
    from ..argument_errors.messages import explained

    raise_refusal(explained("torch", name, args, {}))


def _copy_variant(key: str, source: str, arguments: str) -> Any:
    copy = public_function(REGISTRY[key])

    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is None:
            return copy(*args, **kwargs)
        token = grad_mode.set(False)  # PyTorch's autograd does not see these overloads
        try:
            copy(*args, out=out, **kwargs)
        finally:
            grad_mode.reset(token)
        return None

    call.__name__ = call.__qualname__ = key
    call.__doc__ = f"""`{source}` with copies instead of views.

    Args:
        out: a list of tensors to write to; then the result is None.

    >>> import flambeau as torch
    >>> torch.{key}(torch.arange(2){arguments})
    """ + ("    (tensor([0]), tensor([1]))\n    " if source != "unbind" else "    (tensor(0), tensor(1))\n    ")
    return call


split_copy = _copy_variant("split_copy", "split", ", 1")
split_with_sizes_copy = _copy_variant("split_with_sizes_copy", "split_with_sizes", ", [1, 1]")
unbind_copy = _copy_variant("unbind_copy", "unbind", "")


def slice_copy(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1, *,
               out: Tensor | None = None) -> Tensor:
    """A copy of `input[start:end:step]` along a dimension.

    >>> import flambeau as torch
    >>> torch.slice_copy(torch.arange(4), 0, 1, 3)
    tensor([1, 2])
    """
    return public_function(REGISTRY["slice_copy"])(input, dim=dim, start=start, end=end, step=step, out=out)


def _chunks(input: Tensor, chunks: int, dim: int, one: str, sizes: str) -> Any:
    shape = input._array.shape
    if not shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    try:
        if chunks.__class__ is not int or dim.__class__ is not int:
            raise_refusal(refused("chunk" if one == "_split" else "unsafe_chunk", (input,), (
                ("chunks", chunks, NOT_GIVEN), ("dim", dim, 0))))
        if chunks <= 0:
            raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
        length = shape[wrap_dim(dim, len(shape))]
    except TypeError:
        raise_refusal(refused("chunk" if one == "_split" else "unsafe_chunk", (input,), (
            ("chunks", chunks, NOT_GIVEN), ("dim", dim, 0))))
        raise
    size = -(-length // chunks)
    if not size and not length:
        return public_function(REGISTRY[sizes])(input, split_sizes=(0,) * chunks, dim=dim)
    if dim.__class__ is not int:
        return public_function(REGISTRY[one])(input, split_size=size, dim=dim)
    return tuple(apply(REGISTRY[one], [input], {"split_size": size, "dim": dim}))


@known_views
def chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """At most `chunks` views of equal size along a dimension; the last may be smaller.

    >>> import flambeau as torch
    >>> torch.chunk(torch.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    return _chunks(input, chunks, dim, "_split", "split_with_sizes")


def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """`chunk`, whose outputs autograd does not treat as views.

    >>> import flambeau as torch
    >>> torch.unsafe_chunk(torch.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    return _chunks(input, chunks, dim, "unsafe_split", "unsafe_split_with_sizes")


def tensor_split(input: Tensor, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None,
                 sections: Any = None) -> Any:
    """Views along a dimension: a number of sections of nearly equal size, or split at the given indices.

    >>> import flambeau as torch
    >>> torch.tensor_split(torch.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    splits = next(x for x in (indices_or_sections, indices, sections) if x is not None)
    shape = input._array.shape
    if not shape:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    axis = wrap_dim(dim, len(shape))
    length = shape[axis]
    if isinstance(splits, Tensor):
        if splits._array.dtype != np.int64:
            raise RuntimeError("tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                               f"{splits.dtype.scalar_name}")
        if splits._array.ndim > 1:
            raise RuntimeError("tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
                               f"one-dimensional tensor, but got a tensor with {splits._array.ndim} dims")
        splits = splits.tolist()
    if isinstance(splits, int):
        if splits <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {splits}")
        if splits >= 2**63:
            raise ValueError("Overflow when unpacking long long")
        small, larger = divmod(length, splits)
        bounds, start = [], 0
        for i in range(splits):
            end = start + small + (1 if i < larger else 0)
            bounds.append((start, end))
            start = end
    else:
        cuts = [int(i) for i in splits]
        bounds = list(zip([0, *cuts], [*cuts, length], strict=True))
    return tuple(apply(REGISTRY["slice"], [input], {"dim": axis, "start": a, "end": b, "step": 1}) for a, b in bounds)


def _split_along(name: str, at_least: int, dim_of: Any) -> Any:
    def call(input: Tensor, indices_or_sections: Any = None, *, indices: Any = None, sections: Any = None) -> Any:
        splits = next(x for x in (indices_or_sections, indices, sections) if x is not None)
        if not isinstance(splits, (int, tuple, list)):
            raise TypeError(f"{name}() received an invalid combination of arguments - got (Tensor, "
                            f"{type(splits).__name__}), but expected one of:\n * (Tensor input, int sections)\n * "
                            "(Tensor input, tuple of ints indices)\n")
        n = input._array.ndim
        if n < at_least:
            raise RuntimeError(f"torch.{name} requires a tensor with at least {at_least} dimension, but got a tensor "
                               f"with {n} dimensions!")
        dim = dim_of(n)
        if isinstance(splits, int):
            length = input._array.shape[dim]
            if splits == 0 or length % splits:
                raise RuntimeError(f"torch.{name} attempted to split along dimension {dim}, but the size of the "
                                   f"dimension {length} is not divisible by the split_size {splits}!")
        return tensor_split(input, splits, dim)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (f"`tensor_split` along a fixed dimension.\n\n    >>> import flambeau as torch\n"
                    f"    >>> len(torch.{name}(torch.ones(2, 2, 2), 2))\n    2\n    ")
    return call


hsplit = _split_along("hsplit", 1, lambda n: 0 if n == 1 else 1)
vsplit = _split_along("vsplit", 2, lambda n: 0)
dsplit = _split_along("dsplit", 3, lambda n: 2)

METHODS: dict[str, Any] = {
    "split": split, "chunk": chunk, "unsafe_chunk": unsafe_chunk, "tensor_split": tensor_split, "hsplit": hsplit,
    "vsplit": vsplit, "dsplit": dsplit,
}
