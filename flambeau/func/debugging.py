"""`func.debug_unwrap`: the whole tensor of which a transformed function sees a part."""

from __future__ import annotations

from .._tensor import Tensor
from .._tensor.dispatch.batched_tensor import BatchedTensor, make_batched


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor around a batched one, with the dimensions over which it is mapped first, to print it in a debugger.

    Args:
        tensor: a tensor inside of `vmap`; any other is returned as it is.
        recurse: whether all mapped dimensions are shown, or the innermost one.

    >>> import flambeau as torch
    >>> shapes = []
    >>> def function(x):
    ...     shapes.append((x.shape, torch.func.debug_unwrap(x).shape))
    ...     return x.sum()
    >>> _ = torch.vmap(function)(torch.ones(2, 3))
    >>> shapes
    [(flambeau.Size([3]), flambeau.Size([2, 3]))]
    """
    if not isinstance(tensor, BatchedTensor):
        return tensor
    levels = tensor._levels[:-1]
    return make_batched(tensor._value, levels) if levels and not recurse else tensor._value


__all__ = ["debug_unwrap"]
