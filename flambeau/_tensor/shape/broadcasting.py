"""Functions that broadcast tensors and shapes, reverse a broadcast, and give tensors a least number of dimensions."""

from __future__ import annotations

from typing import Any

from ...ops.declare import REGISTRY
from ...shapes import Size
from ..argument_errors.guards import raise_refusal, refused
from ..argument_errors.type_names import check_tensors, type_name
from ..dispatch.apply import apply
from ..tensor import Tensor
from .reshaping import expand, int_args, list_by_name, reshape, unsqueeze, view

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "broadcast_shapes", "broadcast_tensors", "broadcast_to",
           "sum_to_size"]


def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """`expand` to a shape.

    >>> import flambeau as torch
    >>> torch.broadcast_to(torch.ones(1), (2, 3)).shape
    flambeau.Size([2, 3])
    """
    if not isinstance(size, (tuple, list)):
        raise TypeError("broadcast_to(): argument 'size' must be tuple of ints")  # a guard says more
    return expand(input, size)


def _broadcast_to(self: Tensor, *size: Any, **named: Any) -> Tensor:
    """`torch.broadcast_to`: the method takes sizes one by one, too.

    >>> import flambeau as torch
    >>> torch.ones(1).broadcast_to(2, 3).shape
    flambeau.Size([2, 3])
    """
    return expand(self, *(list_by_name("broadcast_to", "size", size, named) if named else size))


_broadcast_to.__name__ = _broadcast_to.__qualname__ = "broadcast_to"


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of these shapes broadcast to.

    >>> import flambeau as torch
    >>> torch.broadcast_shapes((2, 1), (3,))
    flambeau.Size([2, 3])

    Raises:
        RuntimeError: two sizes differ and neither is 1.
    """
    sizes = [(s,) if isinstance(s, int) else s for s in shapes]
    n = max((len(s) for s in sizes), default=0)
    result = [1] * n
    for number, shape in enumerate(sizes):
        for i in range(-1, -1 - len(shape), -1):
            if shape[i] in (1, result[i]):
                continue
            if result[i] != 1:
                raise RuntimeError(f"Attempting to broadcast a dimension of length {shape[i]} at {i}! Mismatching "
                                   f"argument at index {number} had {shape}; but expected shape should be "
                                   f"broadcastable to {result}")
            if shape[i] < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            result[i] = shape[i]
    return Size(result)


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors, expanded to their common shape.

    >>> import flambeau as torch
    >>> [x.shape for x in torch.broadcast_tensors(torch.ones(2, 1), torch.ones(3))]
    [flambeau.Size([2, 3]), flambeau.Size([2, 3])]
    """
    check_tensors(tensors)
    from ...shapes import broadcast_shapes as broadcast_two

    shape: tuple[int, ...] = ()
    for x in tensors:
        shape = broadcast_two(shape, x._array.shape)
    return tuple(x if x._array.shape == shape else expand(x, shape) for x in tensors)


def sum_to_size(input: Tensor, *size: Any, **named: Any) -> Tensor:
    """`input` summed over dimensions to the shape `size`, which must broadcast to that of `input`.

    >>> import flambeau as torch
    >>> torch.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    if named:
        size = list_by_name("sum_to_size", "size", size, named)
    shape = int_args(size, "sum_to_size", "size")
    have = input._array.shape
    if not shape:
        return apply(REGISTRY["_sum_all"], [input])
    if have == shape:
        return input
    lead = len(have) - len(shape)
    if lead < 0 or any(s not in (1, have[i + lead]) for i, s in enumerate(shape)):
        raise RuntimeError(f"size {{{list(shape)}}} is not expandable to size {{{list(have)}}}.")
    axes = tuple(range(lead)) + tuple(i + lead for i, s in enumerate(shape) if s == 1 and have[i + lead] != 1)
    summed = apply(REGISTRY["sum"], [input], {"dim": axes, "keepdim": True}) if axes else input
    return view(summed, shape) if lead else summed


def _at_least(n: int) -> Any:
    def add_dims(x: Tensor) -> Tensor:
        have = x._array.ndim
        if have >= n:
            return x
        if n == 3 and have:
            return unsqueeze(unsqueeze(x, 0), -1) if have == 1 else unsqueeze(x, -1)
        return reshape(x, (1,) * n) if not have else unsqueeze(x, 0)

    def call(*tensors: Any) -> Any:
        given = tensors[0] if len(tensors) == 1 else tensors
        if isinstance(given, Tensor):
            return add_dims(given)
        if not isinstance(given, (tuple, list)):
            raise_refusal(refused(f"atleast_{n}d", tensors))
        for i, x in enumerate(given):
            if not isinstance(x, Tensor):
                raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type_name(x)}")
        return tuple(map(add_dims, given))

    call.__name__ = call.__qualname__ = f"atleast_{n}d"
    call.__doc__ = f"""The tensors, with at least {n} dimension{'s' if n > 1 else ''} each, as a tensor or a tuple.

    >>> import flambeau as torch
    >>> torch.atleast_{n}d(torch.tensor(2)).shape
    flambeau.Size({[1] * n})
    """
    return call


atleast_1d, atleast_2d, atleast_3d = _at_least(1), _at_least(2), _at_least(3)


METHODS = {"sum_to_size": sum_to_size, "broadcast_to": _broadcast_to}
