"""`map`: a function of each slice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor, functions
from ..ops.function_operators import HigherOrderOperator
from ..trees import tree_flatten, tree_leaves, tree_unflatten
from .flat_functions import FlatFunction

__all__ = ["map", "map_impl"]


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """`f` of each slice of `xs` along dimension 0, with the results stacked.

    Args:
        f: a function of a slice and `args`.
        xs: a tree of tensors of equal length in dimension 0.

    Raises:
        RuntimeError: there is no slice, a leaf of `xs` is no tensor, or their lengths differ.

    >>> import flambeau as torch
    >>> from flambeau._higher_order_ops import map
    >>> map(lambda x, y: x * y, torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([10., 1.]))
    tensor([[10.,  2.],
            [30.,  4.]])
    """
    leaves, structure = tree_flatten(xs)
    if not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    if not leaves or not leaves[0].shape[0]:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    if any(leaf.shape[0] != leaves[0].shape[0] for leaf in leaves):
        raise RuntimeError("Leading dimensions of mapped xs must be consistent. Got shapes "
                           f"{[leaf.shape for leaf in leaves]}.")
    extra = tree_leaves(args)
    body = FlatFunction(lambda x, y: f(x, *y), tree_flatten((tree_unflatten(leaves, structure), args))[1])
    return body.unflatten(map_impl(body, leaves, extra))


class MapImpl(HigherOrderOperator):
    """`map_impl(f, xs, args)` of lists of tensors."""

    def __init__(self) -> None:
        super().__init__("map_impl")


map_impl = MapImpl()


@map_impl.py_impl("CompositeExplicitAutograd")
def _compute(f: Callable[..., Any], xs: Any, args: Any) -> Any:
    outputs = [f(*[x[at] for x in xs], *args) for at in range(len(xs[0]))]
    return tuple(functions.stack(list(parts), 0) for parts in zip(*outputs, strict=True))


def _unstack_pytree(xs: Any) -> list[Any]:
    """The slices of a tree of tensors along dimension 0."""
    leaves, structure = tree_flatten(xs)
    if not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise RuntimeError(f"Leaves of xs must be Tensor {leaves}")
    if not all(leaf.shape[0] == leaves[0].shape[0] for leaf in leaves):
        raise RuntimeError(f"Leaves of xs must have same leading dimension size {[leaf.shape for leaf in leaves]}")
    return [tree_unflatten(list(slices), structure) for slices in zip(*leaves, strict=True)]


def _stack_pytree(pytrees: Any) -> Any:
    """Trees of tensors, stacked leaf by leaf; a leaf that is None in all of them stays None."""
    flat, structures = zip(*(tree_flatten(tree) for tree in pytrees), strict=True)
    return tree_unflatten([None if all(leaf is None for leaf in leaves) else functions.stack(list(leaves))
                           for leaves in zip(*flat, strict=True)], structures[0])
