"""Comparisons and classifications: each element's yes or no."""

from __future__ import annotations

from ..declare import elementwise, not_implemented


@elementwise(differentiable=False)
def eq(input, other):
    """Whether input = other.

    >>> import flambeau as torch
    >>> torch.eq(torch.tensor([1, 2]), torch.tensor([1, 3]))
    tensor([ True, False])
    """
    return input == other


@elementwise(differentiable=False, aliases=("not_equal",))
def ne(input, other):
    """Whether input ≠ other.

    >>> import flambeau as torch
    >>> torch.ne(torch.tensor([1, 2]), torch.tensor([1, 3]))
    tensor([False,  True])
    """
    return input != other


@elementwise(differentiable=False, aliases=("less",), unsupported_dtypes=not_implemented("lt_cpu", "complex"))
def lt(input, other):
    """Whether input < other.

    >>> import flambeau as torch
    >>> torch.lt(torch.tensor([1, 2]), 2)
    tensor([ True, False])
    """
    return input < other


@elementwise(differentiable=False, aliases=("less_equal",), unsupported_dtypes=not_implemented("le_cpu", "complex"))
def le(input, other):
    """Whether input ≤ other.

    >>> import flambeau as torch
    >>> torch.le(torch.tensor([1, 2]), 1)
    tensor([ True, False])
    """
    return input <= other


@elementwise(differentiable=False, aliases=("greater",), unsupported_dtypes=not_implemented("gt_cpu", "complex"))
def gt(input, other):
    """Whether input > other.

    >>> import flambeau as torch
    >>> torch.gt(torch.tensor([1, 2]), 1)
    tensor([False,  True])
    """
    return input > other


@elementwise(differentiable=False, aliases=("greater_equal",), unsupported_dtypes=not_implemented("ge_cpu", "complex"))
def ge(input, other):
    """Whether input ≥ other.

    >>> import flambeau as torch
    >>> torch.ge(torch.tensor([1, 2]), 2)
    tensor([False,  True])
    """
    return input >= other


_TESTS = ("torch", "method")


@elementwise(differentiable=False, expose=_TESTS)
def isnan(xp, input):
    """Whether it is not a number.

    >>> import flambeau as torch
    >>> torch.isnan(torch.tensor([1., float("nan")]))
    tensor([False,  True])
    """
    return xp.isnan(input)


@elementwise(differentiable=False, expose=_TESTS)
def isinf(xp, input):
    """Whether it is infinite, of either sign.

    >>> import flambeau as torch
    >>> torch.isinf(torch.tensor([1., float("-inf")]))
    tensor([False,  True])
    """
    return xp.isinf(input)


@elementwise(differentiable=False, expose=_TESTS)
def isfinite(xp, input):
    """Whether it is neither infinite nor nan.

    >>> import flambeau as torch
    >>> torch.isfinite(torch.tensor([1., float("nan")]))
    tensor([ True, False])
    """
    return xp.isfinite(input)


@elementwise(differentiable=False, expose=_TESTS,
             unsupported_dtypes={"complex": RuntimeError("isposinf does not support complex inputs.")})
def isposinf(xp, input):
    """Whether it is positive infinity.

    >>> import flambeau as torch
    >>> torch.isposinf(torch.tensor([float("inf"), float("-inf")]))
    tensor([ True, False])
    """
    return input == float("inf")


@elementwise(differentiable=False, expose=_TESTS,
             unsupported_dtypes={"complex": RuntimeError("isneginf does not support complex inputs.")})
def isneginf(xp, input):
    """Whether it is negative infinity.

    >>> import flambeau as torch
    >>> torch.isneginf(torch.tensor([float("inf"), float("-inf")]))
    tensor([False,  True])
    """
    return input == float("-inf")


@elementwise(differentiable=False, expose=_TESTS)
def isreal(xp, input):
    """Whether the imaginary part is 0.

    >>> import flambeau as torch
    >>> torch.isreal(torch.tensor([1 + 0j, 1j]))
    tensor([ True, False])
    """
    return xp.isreal(input)


@elementwise(differentiable=False, expose=_TESTS,
             unsupported_dtypes={"complex": NotImplementedError("signbit is not implemented for complex tensors.")})
def signbit(xp, input):
    """Whether the sign is minus; that of -0 is.

    >>> import flambeau as torch
    >>> torch.signbit(torch.tensor([1., -0.]))
    tensor([False,  True])
    """
    return xp.signbit(input)

# Written over an input, their gradient is zero: PyTorch records that.
for _op, _name in ((eq, "Eq"), (ne, "Ne"), (lt, "Lt"), (le, "Le"), (gt, "Gt"), (ge, "Ge")):
    _op.in_place_node(f"{_name}Backward1", f"{_name}Backward0", input=lambda xp, g: xp.zeros_like(g),
                    other=lambda xp, g: xp.zeros_like(g))
