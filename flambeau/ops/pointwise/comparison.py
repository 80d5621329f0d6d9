"""Comparisons and tests of elements; the results are bool tensors."""

from __future__ import annotations

from ..declare import elementwise, not_implemented


@elementwise(differentiable=False)
def eq(input, other):
    """input = other, elementwise.

    >>> import flambeau as torch
    >>> torch.eq(torch.tensor([1, 2]), torch.tensor([1, 3]))
    tensor([ True, False])
    """
    return input == other


@elementwise(differentiable=False, aliases=("not_equal",))
def ne(input, other):
    """input ≠ other, elementwise.

    >>> import flambeau as torch
    >>> torch.ne(torch.tensor([1, 2]), torch.tensor([1, 3]))
    tensor([False,  True])
    """
    return input != other


@elementwise(differentiable=False, aliases=("less",), unsupported_dtypes=not_implemented("lt_cpu", "complex"))
def lt(input, other):
    """input < other, elementwise.

    >>> import flambeau as torch
    >>> torch.lt(torch.tensor([1, 2]), 2)
    tensor([ True, False])
    """
    return input < other


@elementwise(differentiable=False, aliases=("less_equal",), unsupported_dtypes=not_implemented("le_cpu", "complex"))
def le(input, other):
    """input ≤ other, elementwise.

    >>> import flambeau as torch
    >>> torch.le(torch.tensor([1, 2]), 1)
    tensor([ True, False])
    """
    return input <= other


@elementwise(differentiable=False, aliases=("greater",), unsupported_dtypes=not_implemented("gt_cpu", "complex"))
def gt(input, other):
    """input > other, elementwise.

    >>> import flambeau as torch
    >>> torch.gt(torch.tensor([1, 2]), 1)
    tensor([False,  True])
    """
    return input > other


@elementwise(differentiable=False, aliases=("greater_equal",), unsupported_dtypes=not_implemented("ge_cpu", "complex"))
def ge(input, other):
    """input ≥ other, elementwise.

    >>> import flambeau as torch
    >>> torch.ge(torch.tensor([1, 2]), 2)
    tensor([False,  True])
    """
    return input >= other


_TESTS = ("torch", "method")


@elementwise(differentiable=False, expose=_TESTS)
def isnan(xp, input):
    """Whether each element is nan.

    >>> import flambeau as torch
    >>> torch.isnan(torch.tensor([1., float("nan")]))
    tensor([False,  True])
    """
    return xp.isnan(input)


@elementwise(differentiable=False, expose=_TESTS)
def isinf(xp, input):
    """Whether each element is inf or -inf.

    >>> import flambeau as torch
    >>> torch.isinf(torch.tensor([1., float("-inf")]))
    tensor([False,  True])
    """
    return xp.isinf(input)


@elementwise(differentiable=False, expose=_TESTS)
def isfinite(xp, input):
    """Whether each element is neither infinite nor nan.

    >>> import flambeau as torch
    >>> torch.isfinite(torch.tensor([1., float("nan")]))
    tensor([ True, False])
    """
    return xp.isfinite(input)


@elementwise(differentiable=False, expose=_TESTS,
             unsupported_dtypes={"complex": RuntimeError("isposinf does not support complex inputs.")})
def isposinf(xp, input):
    """Whether each element is inf.

    >>> import flambeau as torch
    >>> torch.isposinf(torch.tensor([float("inf"), float("-inf")]))
    tensor([ True, False])
    """
    return input == float("inf")


@elementwise(differentiable=False, expose=_TESTS,
             unsupported_dtypes={"complex": RuntimeError("isneginf does not support complex inputs.")})
def isneginf(xp, input):
    """Whether each element is -inf.

    >>> import flambeau as torch
    >>> torch.isneginf(torch.tensor([float("inf"), float("-inf")]))
    tensor([False,  True])
    """
    return input == float("-inf")


@elementwise(differentiable=False, expose=_TESTS)
def isreal(xp, input):
    """Whether the imaginary part of each element is 0.

    >>> import flambeau as torch
    >>> torch.isreal(torch.tensor([1 + 0j, 1j]))
    tensor([ True, False])
    """
    return xp.isreal(input)


@elementwise(differentiable=False, expose=_TESTS,
             unsupported_dtypes={"complex": NotImplementedError("signbit is not implemented for complex tensors.")})
def signbit(xp, input):
    """Whether the sign bit of each element is set, that of -0 included.

    >>> import flambeau as torch
    >>> torch.signbit(torch.tensor([1., -0.]))
    tensor([False,  True])
    """
    return xp.signbit(input)

# PyTorch records the in-place variants: their gradients are zero.
for _op, _name in ((eq, "Eq"), (ne, "Ne"), (lt, "Lt"), (le, "Le"), (gt, "Gt"), (ge, "Ge")):
    _op.in_place_node(f"{_name}Backward1", f"{_name}Backward0", input=lambda xp, g: xp.zeros_like(g),
                    other=lambda xp, g: xp.zeros_like(g))
