"""Arguments and results of `torch.autograd.functional`: tuples of tensors in a separate graph.

Internally inputs, outputs and vectors are tuples; where the user passed a single tensor, results are unwrapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ...engine.api import grad

Tensors = tuple[Tensor, ...]

NEEDS_SCALAR_INPUT = "input to the user-provided function is a single Tensor with a single element."
NEEDS_SCALAR_OUTPUT = "user-provided function returns a single Tensor with a single element."


def as_tuple(argument: Any, what: str, name: str | None) -> tuple[bool, Tensors]:
    """Whether the argument is a tuple, and the argument as a tuple.

    Args:
        what, name: the argument and the function that the error message names.

    Raises:
        TypeError: an element is not a tensor.
    """
    several = isinstance(argument, tuple)
    values = argument if several else (argument,)
    for i, x in enumerate(values):
        if not isinstance(x, Tensor):
            which = f"value at index {i}" if several else f"given {what}"
            raise TypeError(f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the {which} "
                            f"has type {type(x)}.")
    return several, values


def as_graph_inputs(inputs: Sequence[Tensor], create_graph: bool, need_graph: bool = True) -> Tensors:
    """The function's inputs: connected to their graph under `create_graph`, else new leaves."""
    return tuple(x.view_as(x) if create_graph and x._requires_grad else x.detach().requires_grad_(need_graph)
                 for x in inputs)


def detach_results(values: Any, create_graph: bool) -> Any:
    """The results, detached unless `create_graph`."""
    if create_graph:
        return values
    return tuple(detach_results(x, False) if isinstance(x, tuple) else x.detach() for x in values)


def unwrap_single(values: Any, several: bool) -> Any:
    """A tuple, or its only element if the user passed no tuple."""
    return values if several else values[0]


def unwrap_blocks(rows: Any, several_outputs: bool, several_inputs: bool) -> Any:
    """A nested tuple of blocks, without the levels for which the user passed no tuple."""
    return unwrap_single(rows if several_inputs else tuple(row[0] for row in rows), several_outputs)


def checked_vector(v: Any, like: Tensors, several: bool, name: str, create_graph: bool, needs: str) -> Tensors | None:
    """The vector of a product, checked against the tensors that it multiplies.

    Args:
        v: may be None if `like` is one tensor of one element.
        several: whether those tensors were passed as a tuple.
        needs: the condition that the error message names if `v` is None.

    Raises:
        TypeError: an element is not a tensor.
        RuntimeError: its length or a shape differs, or it is missing.
    """
    if v is None:
        if len(like) != 1 or like[0]._array.size != 1:
            raise RuntimeError(f"The vector v can only be None if the {needs}")
        return None
    _, vectors = as_tuple(v, "v", name)
    vectors = as_graph_inputs(vectors, create_graph, need_graph=False)
    if len(vectors) != len(like):
        if several:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (x, other) in enumerate(zip(vectors, like, strict=True)):
        if x._array.shape != other._array.shape:
            where = f"Entry {i} in " if several else ""
            raise RuntimeError(f"{where}v has invalid size: should be {other.shape} but got {x.shape}.")
    return vectors


def gradients(outputs: Sequence[Any], inputs: Tensors, cotangents: Sequence[Any] | None = None, *,
              create_graph: bool = False, retain_graph: bool | None = None,
              batched: bool = False) -> tuple[Tensor | None, ...]:
    """`autograd.grad` of the outputs that require grad; None for inputs on which they do not depend."""
    seeds = (None,) * len(outputs) if cotangents is None else cotangents
    live = [(x, g) for x, g in zip(outputs, seeds, strict=True) if x is not None and x._requires_grad]
    if not live:
        return (None,) * len(inputs)
    grads: tuple[Tensor | None, ...] = grad(
        [x for x, _ in live], inputs, [g for _, g in live], allow_unused=True, create_graph=create_graph,
        retain_graph=retain_graph, is_grads_batched=batched)
    return grads


def placeholder_cotangents(like: Sequence[Tensor]) -> Tensors:
    """Zero cotangents that require grad: a vector-Jacobian product is linear in them, so any value will do."""
    return tuple(fn.zeros_like(x, requires_grad=True) for x in like)


__all__ = [
    "NEEDS_SCALAR_INPUT",
    "NEEDS_SCALAR_OUTPUT",
    "Tensors",
    "as_graph_inputs",
    "as_tuple",
    "checked_vector",
    "detach_results",
    "gradients",
    "placeholder_cotangents",
    "unwrap_blocks",
    "unwrap_single",
]
