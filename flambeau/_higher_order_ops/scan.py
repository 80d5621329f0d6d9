"""`scan`: a loop over slices that carries a state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import functions
from ..ops.function_operators import HigherOrderOperator, recorder
from ..trees import tree_flatten, tree_unflatten
from .flat_functions import FlatFunction

__all__ = ["scan", "scan_op"]


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
    if recorder() is not None:
        return _recorded(combine_fn, init, xs, dim, reverse)
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


class ScanOp(HigherOrderOperator):
    """`scan_op(combine_fn, init, xs, additional_inputs)` of lists of tensors, along dimension 0."""

    def __init__(self) -> None:
        super().__init__("scan")


scan_op = ScanOp()


@scan_op.py_impl("CompositeExplicitAutograd")
def _compute(combine_fn: Callable[..., Any], init: Any, xs: Any, additional_inputs: Any = ()) -> Any:
    def combine(carry: list[Any], slices: list[Any]) -> tuple[list[Any], list[Any]]:
        flat = combine_fn(*carry, *slices, *additional_inputs)
        return list(flat[:len(init)]), list(flat[len(init):])

    carry, outputs = scan(combine, list(init), list(xs))
    return (*carry, *outputs)


def _recorded(combine_fn: Callable[..., Any], init: Any, xs: Any, dim: int, reverse: bool) -> tuple[Any, Any]:
    """`scan` as an operator of a graph."""
    leaves, _structure = tree_flatten(xs)
    carry = tree_flatten(init)[0]

    def along_first(x: Any) -> Any:
        return functions.movedim(x, 0, dim) if dim else x

    slices = [functions.movedim(x, dim, 0) if dim else x for x in leaves]
    if reverse:
        slices = [functions.flip(x, [0]) for x in slices]
    combine = FlatFunction(combine_fn, tree_flatten((init, xs))[1], list)
    results = scan_op(combine, carry, slices, ())
    last, outputs = results[:len(carry)], results[len(carry):]
    if reverse:
        outputs = [functions.flip(x, [0]) for x in outputs]
    return combine.unflatten([*last, *map(along_first, outputs)])
