"""Logical operators on bool values, and bitwise operators on integers."""

from __future__ import annotations

from ..declare import FOUND_DTYPE, elementwise, not_implemented


@elementwise(differentiable=False, scalar_inputs=())
def logical_and(xp, input, other):
    """Whether both elements are nonzero.

    >>> import flambeau as torch
    >>> torch.logical_and(torch.tensor([True, True]), torch.tensor([True, False]))
    tensor([ True, False])
    """
    return xp.logical_and(input, other)


@elementwise(differentiable=False, scalar_inputs=())
def logical_or(xp, input, other):
    """Whether either element is nonzero.

    >>> import flambeau as torch
    >>> torch.logical_or(torch.tensor([True, False]), torch.tensor([False, False]))
    tensor([ True, False])
    """
    return xp.logical_or(input, other)


@elementwise(differentiable=False, scalar_inputs=())
def logical_xor(xp, input, other):
    """Whether exactly one of the two elements is nonzero.

    >>> import flambeau as torch
    >>> torch.logical_xor(torch.tensor([True, True]), torch.tensor([True, False]))
    tensor([False,  True])
    """
    return xp.logical_xor(input, other)


@elementwise(differentiable=False)
def logical_not(xp, input):
    """Whether each element is 0.

    >>> import flambeau as torch
    >>> torch.logical_not(torch.tensor([0, 3]))
    tensor([ True, False])
    """
    return xp.logical_not(input)


def _check_one_tensor(name):
    """Return a check that raises PyTorch's TypeError where both operands are scalars."""
    def check(input, other):
        if not hasattr(input, "shape") and not hasattr(other, "shape"):
            raise TypeError(f"{name}() received an invalid combination of arguments - got ({type(input).__name__}, "
                            f"{type(other).__name__}), but expected one of:\n * (Tensor input, Tensor other, *, Tensor "
                            "out = None)\n * (Number self, Tensor other)\n * (Tensor input, Number other, *, Tensor "
                            "out = None)\n")
    return check


_BOTH = ("input", "other")


@elementwise(differentiable=False, scalar_inputs=_BOTH, check=_check_one_tensor("bitwise_and"),
             unsupported_dtypes=not_implemented("bitwise_and_cpu", "float", "complex"))
def bitwise_and(xp, input, other):
    """The bitwise AND.

    >>> import flambeau as torch
    >>> torch.bitwise_and(torch.tensor([6, 5]), 3)
    tensor([2, 1])
    """
    return xp.bitwise_and(input, other)


@elementwise(differentiable=False, scalar_inputs=_BOTH, check=_check_one_tensor("bitwise_or"),
             unsupported_dtypes=not_implemented("bitwise_or_cpu", "float", "complex"))
def bitwise_or(xp, input, other):
    """The bitwise OR.

    >>> import flambeau as torch
    >>> torch.bitwise_or(torch.tensor([6, 5]), 3)
    tensor([7, 7])
    """
    return xp.bitwise_or(input, other)


@elementwise(differentiable=False, scalar_inputs=_BOTH, check=_check_one_tensor("bitwise_xor"),
             unsupported_dtypes=not_implemented("bitwise_xor_cpu", "float", "complex"))
def bitwise_xor(xp, input, other):
    """The bitwise exclusive OR.

    >>> import flambeau as torch
    >>> torch.bitwise_xor(torch.tensor([6, 5]), 3)
    tensor([5, 6])
    """
    return xp.bitwise_xor(input, other)


@elementwise(differentiable=False, unsupported_dtypes=not_implemented("bitwise_not_cpu", "float", "complex"),
             exact_out=FOUND_DTYPE)
def bitwise_not(xp, input):
    """The bitwise complement.

    >>> import flambeau as torch
    >>> torch.bitwise_not(torch.tensor([0, 5]))
    tensor([-1, -6])
    """
    return xp.bitwise_not(input)


@elementwise(differentiable=False, scalar_inputs=_BOTH, check=_check_one_tensor("bitwise_left_shift"),
             unsupported_dtypes=not_implemented("lshift_cpu", "bool", "float", "complex"))
def bitwise_left_shift(xp, input, other):
    """The bits shifted to the left, input · 2ʸ.

    >>> import flambeau as torch
    >>> torch.bitwise_left_shift(torch.tensor([1, 3]), 2)
    tensor([ 4, 12])
    """
    return xp.bitwise_left_shift(input, other)


@elementwise(differentiable=False, scalar_inputs=_BOTH, check=_check_one_tensor("bitwise_right_shift"),
             unsupported_dtypes=not_implemented("rshift_cpu", "bool", "float", "complex"))
def bitwise_right_shift(xp, input, other):
    """The bits shifted to the right, ⌊input / 2ʸ⌋.

    >>> import flambeau as torch
    >>> torch.bitwise_right_shift(torch.tensor([8, -8]), 1)
    tensor([ 4, -4])
    """
    return xp.bitwise_right_shift(input, other)
