"""`scan`: a loop over slices that carries a state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import functions
from ..trees import tree_flatten, tree_unflatten

__all__ = ["scan"]


def scan(combine_fn: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, *, dim: int = 0,
         reverse: bool = False) -> tuple[Any, Any]:
    """Carry a state along a dimension: (carry, yₜ) = combine_fn(carry, xₜ); the y are stacked along `dim`.

    Args:
        init: the first carry, a tree of tensors.
        xs: a tree of tensors whose slices along `dim` are the xₜ.
        reverse: whether to begin at the last slice.

    Raises:
        RuntimeError: there is nothing to scan, or the lengths along `dim` differ.

    >>> import flambeau as torch
    >>> from flambeau._higher_order_ops import scan
    >>> scan(lambda c, x: (c + x, c * x), torch.tensor(0.), torch.tensor([1., 2., 3.]))
    (tensor(6.), tensor([0., 2., 9.]))
    """
    leaves, structure = tree_flatten(xs)
    if not leaves:
        raise RuntimeError("xs leaves must be a non-empty list of tensors")
    length = leaves[0].shape[dim]
    if any(leaf.shape[dim] != length for leaf in leaves):
        raise RuntimeError(f"all xs must have the same length along dim {dim}, got "
                           f"{[tuple(leaf.shape) for leaf in leaves]}")
    if length == 0:
        raise RuntimeError(f"All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0, got "
                           f"{[tuple(leaf.shape) for leaf in leaves]}")
    carry, outputs, out_structure = init, [], None
    carry_structure = tree_flatten(init)[1]
    for at in reversed(range(length)) if reverse else range(length):
        carry, output = combine_fn(carry, tree_unflatten([leaf.select(dim, at) for leaf in leaves], structure))
        if tree_flatten(carry)[1] != carry_structure:
            raise RuntimeError(f"The tree structure of the initial carry and the new carry are not identical: "
                               f"{carry_structure} and {tree_flatten(carry)[1]}")
        parts, out_structure = tree_flatten(output)
        outputs.append(parts)
    if reverse:
        outputs.reverse()
    assert out_structure is not None
    return carry, tree_unflatten([functions.stack(parts, dim) for parts in zip(*outputs, strict=True)], out_structure)
