"""Strides: those of new tensors, of results of elementwise operators, and which memory format they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau as torch

from .dimensions import validate_shape
from .dtype_rules import is_cpu_scalar_tensor
from .same_metadata import check_same_shape

__all__ = [
    "apply_perm", "are_strides_like_channels_last_or_false", "check_contiguous_sizes_strides",
    "check_in_bounds_for_storage",
    "clone_preserve_strides", "compute_elementwise_output_logical_to_physical_perm",
    "compute_elementwise_output_strides", "compute_required_storage_length", "invert_perm",
    "is_channels_last_contiguous", "is_channels_last_contiguous_2d", "is_channels_last_contiguous_3d",
    "is_channels_last_contiguous_or_false", "is_channels_last_contiguous_or_false_2d",
    "is_channels_last_contiguous_or_false_3d", "is_contiguous", "is_contiguous_for_memory_format",
    "is_contiguous_for_memory_format_or_false", "is_contiguous_or_false", "is_non_overlapping_and_dense_or_false",
    "make_channels_last_1d_strides_for", "make_channels_last_2d_strides_for", "make_channels_last_3d_strides_for",
    "make_channels_last_strides_for", "make_contiguous_strides_for", "suggest_memory_format",
    "validate_memory_format"]


def _nested(sizes: Sequence[int], strides: Sequence[int], order: Sequence[int]) -> bool:
    """Whether the strides are those of elements without gaps, dimensions in an order from the innermost."""
    expected = 1
    for i in order:
        if sizes[i] != 1:
            if strides[i] != expected:
                return False
            expected *= sizes[i]
    return True


def check_contiguous_sizes_strides(sizes: Sequence[int], strides: Sequence[int], false_if_dde: bool = False) -> bool:
    """Whether strides are row-major without gaps."""
    return _nested(sizes, strides, range(len(sizes))[::-1])


def is_contiguous(a: torch.Tensor, false_if_dde: bool = False) -> bool:
    """Whether a tensor is row-major without gaps, or has fewer than two elements."""
    return a.numel() < 2 or check_contiguous_sizes_strides(a.shape, a.stride())


def is_channels_last_contiguous_2d(a: torch.Tensor, false_if_dde: bool = False) -> bool:
    """Whether a tensor of four dimensions is channels-last."""
    return a.ndim == 4 and _nested(a.shape, a.stride(), (1, 3, 2, 0))


def is_channels_last_contiguous_3d(a: torch.Tensor, false_if_dde: bool = False) -> bool:
    """Whether a tensor of five dimensions is channels-last."""
    return a.ndim == 5 and _nested(a.shape, a.stride(), (1, 4, 3, 2, 0))


def is_channels_last_contiguous(a: torch.Tensor) -> bool:
    """Whether a tensor of four or five dimensions is channels-last."""
    return is_channels_last_contiguous_2d(a) or is_channels_last_contiguous_3d(a)


def validate_memory_format(memory_format: torch.memory_format) -> None:
    """Check that a value is a memory format.

    Raises:
        RuntimeError: it is not.
    """
    if memory_format not in (torch.contiguous_format, torch.preserve_format, torch.channels_last,
                             torch.channels_last_3d):
        raise RuntimeError(f"Received unknown memory format {memory_format}!")


def is_contiguous_for_memory_format(a: torch.Tensor, *, memory_format: torch.memory_format,
                                    false_if_dde: bool = False) -> bool:
    """Whether a tensor has a memory format.

    Raises:
        RuntimeError: an unknown format, or `preserve_format`.
    """
    validate_memory_format(memory_format)
    for each, has in ((torch.contiguous_format, is_contiguous), (torch.channels_last, is_channels_last_contiguous_2d),
                      (torch.channels_last_3d, is_channels_last_contiguous_3d)):
        if memory_format == each:
            return has(a)
    raise RuntimeError(f"is_contiguous received unsupported memory format {memory_format}")


#: sizes are numbers here: there is no doubt about them
is_contiguous_or_false = is_contiguous
is_channels_last_contiguous_or_false_2d = is_channels_last_contiguous_2d
is_channels_last_contiguous_or_false_3d = is_channels_last_contiguous_3d
is_contiguous_for_memory_format_or_false = is_contiguous_for_memory_format
is_channels_last_contiguous_or_false = is_channels_last_contiguous


def is_non_overlapping_and_dense_or_false(a: torch.Tensor) -> bool:
    """Whether the elements of a strided tensor fill their memory once, in some order of dimensions."""
    if a.layout is not torch.strided:
        return False
    order = sorted(range(a.ndim), key=lambda i: (a.stride(i), a.shape[i]))
    return is_contiguous(a) or _nested(a.shape, a.stride(), order)


def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """The strides of a new row-major tensor; without `row_major` the last two dimensions are column-major.

    >>> from flambeau._prims_common import make_contiguous_strides_for
    >>> make_contiguous_strides_for((2, 3, 4))
    (12, 4, 1)
    """
    validate_shape(shape)
    strides = [1] * len(shape)
    for i in range(len(shape) - 1)[::-1]:
        strides[i] = strides[i + 1] * max(shape[i + 1], 1)
    if not row_major and len(shape) >= 2:
        strides[-2:] = [1, max(shape[-2], 1)]
    return tuple(strides)


def _channels_last(shape: Sequence[int], spatial: int) -> tuple[int, ...]:
    validate_shape(shape)
    ndim = spatial + 2
    if len(shape) != ndim:
        raise RuntimeError(f"Only tensors of rank {ndim} can use the channels_last{'_3d' if spatial == 3 else ''} "
                           "memory format")
    strides, step = [0] * ndim, 1
    for i in (1, *range(2, ndim)[::-1], 0):
        strides[i] = step
        step *= max(shape[i], 1)
    return tuple(strides)


def make_channels_last_1d_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a new tensor of (N, C, L), C innermost."""
    return _channels_last(shape, 1)


def make_channels_last_2d_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a new tensor of (N, C, H, W), C innermost."""
    return _channels_last(shape, 2)


def make_channels_last_3d_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a new tensor of (N, C, D, H, W), C innermost."""
    return _channels_last(shape, 3)


def make_channels_last_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a new channels-last tensor.

    Raises:
        RuntimeError: not three, four or five dimensions.
    """
    if len(shape) not in (3, 4, 5):
        raise RuntimeError(f"no channels last format strides exist in {len(shape)} dimensions")
    return _channels_last(shape, len(shape) - 2)


def apply_perm(inp: Sequence[Any], perm: Sequence[int]) -> list[Any]:
    """Values in another order."""
    return [inp[x] for x in perm]


def invert_perm(perm: Sequence[int]) -> list[int]:
    """The permutation that takes another one back."""
    inverse = [-1] * len(perm)
    for i, x in enumerate(perm):
        inverse[x] = i
    return inverse


def compute_elementwise_output_logical_to_physical_perm(
        *tensors: Any, _skip_checks: bool = False, ambiguity_check: bool = False) -> tuple[list[int], bool]:
    """The order of dimensions, outermost first, in the result of an elementwise operator.

    Returns:
        The order, and whether the strides leave it open (asked by `ambiguity_check`).

    Raises:
        ValueError: no tensors.
    """
    if not _skip_checks:
        if not tensors:
            raise ValueError("Can't compute elementwise output strides for zero tensors!")
        check_same_shape(*tensors, allow_cpu_scalar_tensors=True)
        tensors = tuple(a for a in tensors if isinstance(a, torch.Tensor) and not is_cpu_scalar_tensor(a))
    if not tensors or tensors[0].ndim < 2:
        return ([0] if tensors and tensors[0].ndim else []), False
    ndim, shape = tensors[0].ndim, tensors[0].shape
    row_major = all(is_contiguous(t) for t in tensors)
    channels_last = all(is_channels_last_contiguous_2d(t) for t in tensors)
    if row_major and not channels_last:
        return list(range(ndim)), False
    if channels_last and not row_major:
        return [0, *range(2, ndim), 1], False

    def compare(inner: int, outer: int) -> int:
        """1: the dimensions change places; -1: they do not; 0: nothing says."""
        for t in tensors:
            a, b = t.stride(inner), t.stride(outer)
            if a == 0 or b == 0 or (a == b and shape[inner] <= shape[outer]):
                continue
            return 1 if a >= b else -1
        return 0

    perm = list(range(ndim))[::-1]
    for i in range(1, ndim):
        at = i
        for other in range(i)[::-1]:
            found = compare(perm[other], perm[at])
            if found > 0:
                perm[other], perm[at] = perm[at], perm[other]
                at = other
            elif found < 0:
                break
    ambiguous = ambiguity_check and any(compare(perm[i], perm[i + 1]) != -1 for i in range(ndim - 1))
    return perm[::-1], ambiguous


def compute_elementwise_output_strides(*tensors: Any) -> tuple[int, ...]:
    """The strides of the result of an elementwise operator.

    Raises:
        ValueError: no tensors.

    >>> import flambeau as torch
    >>> from flambeau._prims_common import compute_elementwise_output_strides
    >>> compute_elementwise_output_strides(torch.ones(3, 2).t(), torch.ones(3, 2).t())
    (1, 2)
    """
    if not tensors:
        raise ValueError("Can't compute elementwise output strides for zero tensors!")
    check_same_shape(*tensors, allow_cpu_scalar_tensors=True)
    tensors = tuple(a for a in tensors if isinstance(a, torch.Tensor) and not is_cpu_scalar_tensor(a))
    if not tensors or tensors[0].ndim < 2:
        return (1,) * (tensors[0].ndim if tensors else 0)
    if len(tensors) == 1 and is_non_overlapping_and_dense_or_false(tensors[0]):
        return tuple(tensors[0].stride())
    perm, _ = compute_elementwise_output_logical_to_physical_perm(*tensors, _skip_checks=True)
    strides = make_contiguous_strides_for(apply_perm(tensors[0].shape, perm))
    return tuple(apply_perm(strides, invert_perm(perm)))


def are_strides_like_channels_last_or_false(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether strides grow as those of a channels-last tensor, gaps and broadcast batches allowed."""
    ndim = len(shape)
    if ndim not in (4, 5) or strides[1] == 0:
        return False
    least = 0
    for d in (1, *range(2, ndim)[::-1], 0):
        if shape[d] == 0 or strides[d] < least or (d == 0 and least == strides[1]):
            return False
        least = strides[d] * max(shape[d], 1)
    return True


def suggest_memory_format(x: torch.Tensor) -> torch.memory_format:
    """The memory format that a tensor's strides are like."""
    if x.layout is torch.strided and are_strides_like_channels_last_or_false(x.shape, x.stride()):
        return torch.channels_last if x.ndim == 4 else torch.channels_last_3d
    return torch.contiguous_format


def compute_required_storage_length(shape: Sequence[int], strides: Sequence[int], storage_offset: int) -> int:
    """The number of elements that a storage must have for a view of it.

    >>> from flambeau._prims_common import compute_required_storage_length
    >>> compute_required_storage_length((2, 3), (10, 1), 5)
    18
    """
    if 0 in shape:
        return 0
    return 1 + storage_offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def check_in_bounds_for_storage(a: Any, shape: Any, strides: Any, storage_offset: int) -> None:
    """Check that a view of a storage is in it.

    Raises:
        ValueError: it is not.
    """
    needed = compute_required_storage_length(shape, strides, storage_offset)
    if a.size() < needed:
        raise ValueError(f"Can't view a storage of size {a.size()} with an offset of {storage_offset}, shape of "
                         f"{shape}, and strides of {strides}, which requires a storage of size {needed}")


def clone_preserve_strides(x: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides, overlapping ones too."""
    needed = compute_required_storage_length(x.shape, x.stride(), x.storage_offset())
    buffer = torch.as_strided(x, (needed,), (1,), 0).clone()
    return torch.as_strided(buffer, x.shape, x.stride(), x.storage_offset())
