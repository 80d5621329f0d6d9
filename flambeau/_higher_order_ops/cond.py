"""`torch.cond`: a branch."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor, functions
from .._tensor.dispatch.batched_tensor import BatchedTensor
from ..ops.function_operators import HigherOrderOperator, recorder
from ..trees import tree_leaves, tree_map
from .flat_functions import FlatFunction, flat_operands

__all__ = ["cond", "cond_op"]


def cond(pred: bool | int | float | Tensor, true_fn: Callable[..., Any], false_fn: Callable[..., Any],
         operands: tuple[Any, ...] | list[Any] = ()) -> Any:
    """`true_fn(*operands)` if the predicate holds, `false_fn(*operands)` otherwise.

    Args:
        pred: a bool, or a tensor of one element.
        true_fn, false_fn: functions of the operands that return tensors of equal shapes and dtypes.
        operands: a tuple of tensors, or of dicts, lists and tuples of tensors.

    Raises:
        RuntimeError: the predicate has more than one element, a branch is no function, or an operand is no tensor.

    >>> import flambeau as torch
    >>> x = torch.tensor([1., 4.])
    >>> torch.cond(x.sum() > 0, lambda x: x.sqrt(), lambda x: x, (x,))
    tensor([1., 2.])
    """
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)) or not all(isinstance(leaf, (Tensor, int, float, bool))
                                                          for leaf in tree_leaves(operands)):
        raise RuntimeError("Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of "
                           f"tensor leaves, but got {operands}.")
    if isinstance(pred, Tensor) and recorder() is not None:
        leaves, structure = flat_operands(operands)
        branches = FlatFunction(true_fn, structure), FlatFunction(false_fn, structure)
        return branches[0].unflatten(cond_op(pred, *branches, leaves))
    if isinstance(pred, Tensor) and getattr(type(pred), "takes_both_branches", False):
        holds = pred.bool().reshape(())
        return tree_map(lambda a, b: functions.where(holds, a, b), true_fn(*operands), false_fn(*operands))
    if type(pred) is BatchedTensor:
        return tree_map(lambda a, b: functions.where(pred, a, b), true_fn(*operands), false_fn(*operands))
    return (true_fn if builtins.bool(pred) else false_fn)(*operands)


class CondOp(HigherOrderOperator):
    """`cond_op(pred, true_fn, false_fn, operands)`: the branches' results are tuples of tensors in graphs."""

    def __init__(self) -> None:
        super().__init__("cond")


cond_op = CondOp()
cond_op.py_impl("CompositeExplicitAutograd")(cond)
