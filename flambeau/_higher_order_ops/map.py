"""`map`: a function of each slice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import functions
from ..trees import tree_flatten, tree_map, tree_unflatten

__all__ = ["map"]


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """`f` of each slice of `xs` along dimension 0, with the results stacked.

    Args:
        f: a function of a slice and `args`.
        xs: a tree of tensors of equal length in dimension 0.

    Raises:
        RuntimeError: there is no slice.

    >>> import flambeau as torch
    >>> from flambeau._higher_order_ops import map
    >>> map(lambda x, y: x * y, torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([10., 1.]))
    tensor([[10.,  2.],
            [30.,  4.]])
    """
    leaves, structure = tree_flatten(xs)
    if not leaves or not leaves[0].shape[0]:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    if any(leaf.shape[0] != leaves[0].shape[0] for leaf in leaves):
        raise RuntimeError("Leading dimensions of mapped xs must be consistent. Got shapes "
                           f"{[leaf.shape for leaf in leaves]}.")
    outputs = [f(tree_unflatten([leaf[at] for leaf in leaves], structure), *args) for at in range(len(leaves[0]))]
    return tree_map(lambda *parts: functions.stack(parts, 0), outputs[0], *outputs[1:])
