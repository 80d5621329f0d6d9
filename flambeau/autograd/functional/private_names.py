"""PyTorch's private functions in `torch.autograd.functional` that packages import (pytorch-minimize does)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ...func.jacobians import basis
from .arguments import as_tuple, detach_results, unwrap_blocks, unwrap_single


def _construct_standard_basis_for(tensors: Sequence[Tensor], tensor_numels: Sequence[int]) -> tuple[Tensor, ...]:
    """Chunks of the N x N identity, of shape (N, elements) for each tensor, where N counts all elements.

    >>> import flambeau as torch
    >>> from flambeau.autograd.functional import _construct_standard_basis_for
    >>> [x.tolist() for x in _construct_standard_basis_for((torch.ones(()), torch.ones(2)), (1, 2))]
    [[[1.0], [0.0], [0.0]], [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]]
    """
    if len(tensors) != len(tensor_numels):
        raise AssertionError(f"Expected tensors and tensor_numels to have the same length, but got {len(tensors)} and "
                             f"{len(tensor_numels)}")
    if not tensors:
        raise AssertionError("Expected at least one tensor")
    total = sum(tensor_numels)
    return tuple(fn.reshape(x, (total, count))
                 for x, count in zip(basis(tensors, 0, total), tensor_numels, strict=True))


def _as_tuple(inp: Any, arg_name: str | None = None, fn_name: str | None = None) -> Any:
    """Whether the input is a tuple, and the input as a tuple; without names for the error only the tuple.

    >>> from flambeau.autograd.functional import _as_tuple
    >>> _as_tuple([1, 2])
    (1, 2)
    """
    if arg_name is None and fn_name is None:
        return tuple(inp) if isinstance(inp, (tuple, list)) else (inp,)
    return as_tuple(inp, str(arg_name), fn_name)


def _grad_postprocess(inputs: Any, create_graph: bool) -> Any:
    """Tensors in nested tuples, without history unless `create_graph`.

    >>> import flambeau as torch
    >>> from flambeau.autograd.functional import _grad_postprocess
    >>> _grad_postprocess((torch.ones(1, requires_grad=True),), create_graph=False)
    (tensor([1.]),)
    """
    return detach_results(inputs, create_graph)


def _tuple_postprocess(res: Any, to_unpack: bool | tuple[bool, bool]) -> Any:
    """A tuple, or its element where the user passed no tuple; of nested tuples for outputs and inputs.

    >>> from flambeau.autograd.functional import _tuple_postprocess
    >>> _tuple_postprocess((1,), False), _tuple_postprocess(((1, 2),), (False, True))
    (1, (1, 2))
    """
    return unwrap_blocks(res, *to_unpack) if isinstance(to_unpack, tuple) else unwrap_single(res, to_unpack)


__all__: list[str] = []
