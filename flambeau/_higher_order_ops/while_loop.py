"""`torch.while_loop`: a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from ..ops.function_operators import HigherOrderOperator, recorder
from ..trees import tree_flatten
from .flat_functions import FlatFunction, flat_operands

__all__ = ["while_loop", "while_loop_op"]


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """Replace the carried inputs by `body_fn(*carried_inputs)` while `cond_fn(*carried_inputs)` holds.

    Args:
        cond_fn: a function that returns a bool or a tensor of one element.
        body_fn: a function that returns a tuple like the carried inputs.
        carried_inputs: a tuple or list of tensors and numbers, or nested.

    Raises:
        RuntimeError: the condition has more than one element, or the body returns another structure.

    >>> import flambeau as torch
    >>> torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, 2 * x), (torch.tensor(0), torch.ones(2)))
    (tensor(3), tensor([8., 8.]))
    """
    if not callable(cond_fn):
        raise RuntimeError("Expect cond_fn to be callable.")
    if not callable(body_fn):
        raise RuntimeError("Expect body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"Expect carried_inputs to be a tuple or list, but got {type(carried_inputs)}")
    carried = tuple(carried_inputs)
    if recorder() is not None:
        leaves, structure = flat_operands(carried)
        body = FlatFunction(body_fn, structure)
        return body.unflatten(while_loop_op(FlatFunction(cond_fn, structure, collect=None), body, leaves, ()))
    structure = tree_flatten(carried)[1]
    while True:
        holds = cond_fn(*carried)
        if isinstance(holds, Tensor):
            if holds.numel() != 1:
                raise RuntimeError(f"cond_fn must return a boolean scalar tensor or a boolean but got {holds}")
        elif not isinstance(holds, bool):
            raise RuntimeError(f"cond_fn must return a boolean scalar tensor or a boolean but got {type(holds)}")
        if not holds:
            return carried
        carried = body_fn(*carried)
        carried = tuple(carried) if isinstance(carried, (tuple, list)) else (carried,)
        if tree_flatten(carried)[1] != structure:
            raise RuntimeError("Expected body_fn_output and carried_inputs to have same number of outputs but got lhs:"
                               f"{len(carried)} and rhs:{len(carried_inputs)}")


class WhileLoopOp(HigherOrderOperator):
    """`while_loop_op(cond_fn, body_fn, carried_inputs, additional_inputs)`: both functions take all of the inputs."""

    def __init__(self) -> None:
        super().__init__("while_loop")


while_loop_op = WhileLoopOp()


@while_loop_op.py_impl("CompositeExplicitAutograd")
def _compute(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any,
             additional_inputs: Any) -> Any:
    return while_loop(lambda *carried: cond_fn(*carried, *additional_inputs),
                      lambda *carried: body_fn(*carried, *additional_inputs), carried_inputs)
