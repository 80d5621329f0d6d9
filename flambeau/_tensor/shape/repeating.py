"""Functions that repeat a tensor or its slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...devices import CPU, contiguous_format
from ...modes import special
from ...ops.declare import REGISTRY
from ...shapes import wrap_dim
from ..argument_errors.guards import NOT_GIVEN, refused
from ..dispatch.apply import apply
from ..dispatch.handlers import handlers, host_elements
from ..dispatch.public_functions import public_function
from ..fastpath.repeated_calls import repeated
from ..fastpath.unary_with_parameters import positional_parameters
from ..meta import is_meta, meta_array
from ..tensor import Tensor, wrap
from ..tracer_notifications import notify_read
from .reshaping import as_ints, expand, reshape, unsqueeze, view

__all__ = ["repeat_interleave", "tile"]

_repeat = positional_parameters(REGISTRY["repeat"])


def tile(input: Tensor, *dims: Any, **named: Any) -> Tensor:
    """The input repeated `dims[i]` times along each dimension; missing counts are 1.

    >>> import flambeau as torch
    >>> torch.tile(torch.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    if named:
        if dims or named.keys() != {"dims"} or not isinstance(named["dims"], (tuple, list)):
            raise refused("tile", (input, *dims), kwargs=named) or TypeError("tile() takes 'dims' only")
        dims = (named["dims"],)
    elif not dims:
        raise TypeError('tile() missing 1 required positional arguments: "dims"')
    if len(dims) == 1 and isinstance(dims[0], (tuple, list)):
        dims = tuple(dims[0])
    counts = as_ints(dims, "tile", "dims")
    counts = (1,) * (input._array.ndim - len(counts)) + counts
    return _repeat(input, counts)


def tile_to(input: Tensor, dims: Any = NOT_GIVEN) -> Tensor:
    """`torch.tile`: the method takes counts one by one, too.

    >>> import flambeau as torch
    >>> torch.tile(torch.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    try:
        counts = as_ints(dims, "tile", "dims")
    except TypeError as error:
        raise refused("tile", (input, dims)) or error from None
    counts = (1,) * (input._array.ndim - len(counts)) + counts
    return _repeat(input, counts)


@repeated
def _repeated_slices(input: Tensor, repeats: int, dim: int | None) -> Tensor:
    return _repeat_interleave(input, repeats, dim)


def repeat_interleave(input: Tensor, repeats: Any = None, dim: int | None = None, *,
                      output_size: int | None = None) -> Tensor:
    """Each element, or each slice along `dim`, repeated consecutively.

    >>> import flambeau as torch
    >>> torch.repeat_interleave(torch.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    if repeats.__class__ is int and output_size is None:
        return _repeated_slices(input, repeats, dim)
    return _repeat_interleave(input, repeats, dim, output_size)


def _repeat_interleave(input: Tensor, repeats: Any, dim: int | None, output_size: int | None = None) -> Tensor:
    from ..dispatch.array_kernels import arrays

    if special[0] and isinstance(repeats if repeats is not None else input, Tensor) and (
            not isinstance((repeats if repeats is not None else input)._array, np.ndarray)):
        return _repeat_batched(input, repeats, dim, output_size)
    if special[0] and isinstance(input if repeats is None else repeats, Tensor):
        notify_read(input if repeats is None else repeats, "repeat_interleave")
    if is_meta(input if repeats is None else repeats):
        if output_size is None:
            raise RuntimeError("cannot repeat_interleave a meta tensor without output_size")
        if repeats is None:
            return input.new_empty(output_size)
        return _repeated_on_meta(input, dim, output_size)
    if repeats is None:
        indices = wrap(arrays.repeat_interleave_indices(host_elements(input)))
        if output_size is not None and output_size != indices._array.size:
            raise RuntimeError("allocated size does not match required size")
        return indices if input._device is CPU else handlers.transfer(indices, input._device)
    if isinstance(repeats, Tensor):
        repeats = wrap(host_elements(repeats))
    if dim is None:
        input = reshape(input, -1)
        dim = 0
    axis = wrap_dim(dim, input._array.ndim)
    if not isinstance(repeats, Tensor):
        if isinstance(repeats, (tuple, list)):
            repeats = wrap(np.asarray(repeats, np.int64))
        else:
            if repeats < 0:
                raise RuntimeError("Repeats must be non-negative")
            shape = input._array.shape
            if output_size is not None and output_size != shape[axis] * repeats:
                raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {shape[axis] * repeats} but got "
                                   f"{output_size}")
            expanded_input = expand(unsqueeze(input, axis + 1), (*shape[:axis + 1], repeats, *shape[axis + 1:]))
            copied = apply(REGISTRY["clone"], [expanded_input], {"memory_format": contiguous_format})
            return view(copied, (*shape[:axis], shape[axis] * repeats, *shape[axis + 1:]))
    counts = repeats._array.reshape(-1) if not repeats._array.ndim or repeats._array.size == 1 else repeats._array
    length = input._array.shape[axis] if input._array.ndim else 1
    if counts.size == 1 and counts.ndim <= 1:
        counts = np.repeat(counts, length)
    elif counts.ndim != 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    elif counts.size != length:
        raise RuntimeError("repeats must have the same size as input along dim, but got repeats.size(0) = "
                           f"{counts.size} and input.size({axis}) = {length}")
    indices = arrays.repeat_interleave_indices(counts)
    if output_size is not None and output_size != indices.size:
        raise RuntimeError("allocated size does not match required size")
    return public_function(REGISTRY["index_select"])(input, axis, wrap(indices))


def _repeated_on_meta(input: Tensor, dim: int | None, output_size: int) -> Tensor:
    """`repeat_interleave` by counts that are not known."""
    if dim is None:
        input, dim = reshape(input, -1), 0
    return public_function(REGISTRY["index_select"])(input, dim, wrap(meta_array((output_size,), np.dtype(np.int64))))


def _repeat_batched(input: Tensor, repeats: Any, dim: int | None, output_size: int | None) -> Tensor:
    """`repeat_interleave` with batched counts, whose sums must be equal."""
    from ..dispatch.batched_tensor import vmap_levels
    from ..dispatch.batching_rules import fallback_loop, warn_fallback

    warn_fallback("repeat_interleave.Tensor")
    levels = vmap_levels([input, repeats])
    if repeats is None:
        return fallback_loop(repeat_interleave, [input], levels)
    return fallback_loop(lambda x, counts: repeat_interleave(x, counts, dim, output_size=output_size),
                         [input, repeats], levels)

METHODS: dict[str, Any] = {"tile": tile, "repeat_interleave": repeat_interleave}
