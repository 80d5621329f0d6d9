"""`associative_scan`: running combinations in logarithmic depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import functions
from ..trees import tree_flatten, tree_unflatten

__all__ = ["associative_scan"]


def associative_scan(combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False,
                     combine_mode: str = "pointwise") -> Any:
    """The running combinations of the slices along `dim`: yₜ = combine_fn(yₜ₋₁, xₜ), y₀ = x₀.

    Args:
        combine_fn: an associative function of two trees like `xs` (without `dim`).
        reverse: whether to begin at the last slice.
        combine_mode: "generic"; "pointwise" is for GPUs.

    Raises:
        ValueError: the mode is "pointwise", or unknown.
        IndexError: `dim` is out of range.

    Source: G. E. Blelloch, "Prefix sums and their applications", 1990 (logarithmic depth; `combine_fn` is vectorised).

    >>> import flambeau as torch
    >>> from flambeau._higher_order_ops import associative_scan
    >>> associative_scan(lambda a, b: a * b, torch.tensor([1., 2., 3.]), dim=0, combine_mode="generic")
    tensor([1., 2., 6.])
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    if combine_mode == "pointwise":
        raise ValueError("For combine_mode='pointwise', all input tensors need to be on CUDA or XPU")
    leaves, structure = tree_flatten(xs)
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    ndim = leaves[0].dim()
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    slices = [functions.movedim(leaf, dim % leaf.dim(), 0) for leaf in leaves]
    if reverse:
        slices = [functions.flip(leaf, (0,)) for leaf in slices]
    batched = _vectorised(combine_fn, structure)
    length, distance = slices[0].shape[0], 1
    while distance < length:  # after each step, slice t combines the last 2·distance slices
        combined = batched([leaf[:-distance] for leaf in slices], [leaf[distance:] for leaf in slices])
        slices = [functions.cat([leaf[:distance], new]) for leaf, new in zip(slices, combined, strict=True)]
        distance *= 2
    if reverse:
        slices = [functions.flip(leaf, (0,)) for leaf in slices]
    return tree_unflatten([functions.movedim(leaf, 0, dim % leaf.dim()) for leaf in slices], structure)


def _vectorised(combine_fn: Callable[[Any, Any], Any], structure: Any) -> Callable[[list[Any], list[Any]], list[Any]]:
    """`combine_fn` over lists of leaves with a leading dimension."""
    from ..func import vmap

    def combine(first: list[Any], second: list[Any]) -> list[Any]:
        leaves, found = tree_flatten(combine_fn(tree_unflatten(first, structure), tree_unflatten(second, structure)))
        if found != structure:
            raise RuntimeError(f"The output of the combine_fn has the structure {found}, its arguments {structure}")
        return leaves

    return vmap(combine)
