"""How tensors enter a function that is to be differentiated, and leave it: as tuples, in a graph of their own.

Inside, inputs, outputs and vectors are tuples of tensors; what the user gave alone is handed
back alone.
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


def as_tuple(given: Any, what: str, name: str | None) -> tuple[bool, Tensors]:
    """Whether a tuple was given, and the tuple.

    Args:
        what: the argument, and `name` the function, that an error names.

    Raises:
        TypeError: something in it is no tensor.
    """
    several = isinstance(given, tuple)
    values = given if several else (given,)
    for i, x in enumerate(values):
        if not isinstance(x, Tensor):
            which = f"value at index {i}" if several else f"given {what}"
            raise TypeError(f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the {which} "
                            f"has type {type(x)}.")
    return several, values


def entered(inputs: Sequence[Tensor], create_graph: bool, need_graph: bool = True) -> Tensors:
    """The inputs as the function gets them: still joined to their own graph if that is differentiated, else leaves."""
    return tuple(x.view_as(x) if create_graph and x._requires_grad else x.detach().requires_grad_(need_graph)
                 for x in inputs)


def left(values: Any, create_graph: bool) -> Any:
    """What is handed back: without a graph, unless one was asked for."""
    if create_graph:
        return values
    return tuple(left(x, False) if isinstance(x, tuple) else x.detach() for x in values)


def alone(values: Any, several: bool) -> Any:
    """A tuple, or the one thing in it where no tuple was given."""
    return values if several else values[0]


def blocks(rows: Any, several_outputs: bool, several_inputs: bool) -> Any:
    """A matrix of blocks, without the levels that no tuple was given for."""
    return alone(rows if several_inputs else tuple(row[0] for row in rows), several_outputs)


def weights(v: Any, like: Tensors, several: bool, name: str, create_graph: bool, needs: str) -> Tensors | None:
    """The vector of a product, checked against the tensors that it multiplies.

    Args:
        v: None where `like` is one tensor of one element.
        several: whether those tensors were given as a tuple.
        needs: what has to be a scalar where `v` is None.

    Raises:
        TypeError: something in it is no tensor.
        RuntimeError: its length or a shape differs, or it is missing.
    """
    if v is None:
        if len(like) != 1 or like[0]._array.size != 1:
            raise RuntimeError(f"The vector v can only be None if the {needs}")
        return None
    _, given = as_tuple(v, "v", name)
    given = entered(given, create_graph, need_graph=False)
    if len(given) != len(like):
        if several:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(given)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (x, other) in enumerate(zip(given, like, strict=True)):
        if x._array.shape != other._array.shape:
            where = f"Entry {i} in " if several else ""
            raise RuntimeError(f"{where}v has invalid size: should be {other.shape} but got {x.shape}.")
    return given


def gradients(outputs: Sequence[Any], inputs: Tensors, cotangents: Sequence[Any] | None = None, *,
              create_graph: bool = False, retain_graph: bool | None = None,
              batched: bool = False) -> tuple[Tensor | None, ...]:
    """`autograd.grad` of those outputs that have a graph; None where an input is in none of theirs."""
    given = (None,) * len(outputs) if cotangents is None else cotangents
    live = [(x, g) for x, g in zip(outputs, given, strict=True) if x is not None and x._requires_grad]
    if not live:
        return (None,) * len(inputs)
    found: tuple[Tensor | None, ...] = grad(
        [x for x, _ in live], inputs, [g for _, g in live], allow_unused=True, create_graph=create_graph,
        retain_graph=retain_graph, is_grads_batched=batched)
    return found


def dummies(like: Sequence[Tensor]) -> Tensors:
    """Cotangents to differentiate a product by: any will do, for it is linear in them."""
    return tuple(fn.zeros_like(x, requires_grad=True) for x in like)


__all__ = ["NEEDS_SCALAR_INPUT", "NEEDS_SCALAR_OUTPUT", "Tensors", "alone", "as_tuple", "blocks", "dummies",
           "entered", "gradients", "left", "weights"]
