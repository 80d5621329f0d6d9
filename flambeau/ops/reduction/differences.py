"""Finite differences and trapezoidal integrals, composites of slices and sums."""

from __future__ import annotations

from ...shapes import wrap_dim
from ..declare import composite


@composite(argument_order=("input", "n", "dim", "prepend", "append"))
def diff(xp, input, prepend=None, append=None, *, n=1, dim=-1):
    """The n-th forward difference along `dim`: out[i] = input[i + 1] - input[i], n times.

    Args:
        n: the number of times; 0 returns a copy of the input.
        prepend, append: tensors that are concatenated to the input along `dim` first.

    >>> import flambeau as torch
    >>> torch.diff(torch.tensor([1, 4, 9, 16]))
    tensor([3, 5, 7])
    """
    ndim = len(input.shape)
    if ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    axis = wrap_dim(dim, ndim)
    for extra in (prepend, append):
        if extra is None:
            continue
        if len(extra.shape) != ndim:
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        for i in range(ndim):
            if i != axis and extra.shape[i] != input.shape[i]:
                raise RuntimeError("diff expects the shape of tensor to prepend or append to match that of input "
                                   f"except along the differencing dimension; input.size({i}) = {input.shape[i]}, but "
                                   f"got tensor.size({i}) = {extra.shape[i]}")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0:
        return xp.clone(input)
    if prepend is not None or append is not None:
        input = xp.cat([x for x in (prepend, input, append) if x is not None], dim)
    subtract = xp.logical_xor if str(input.dtype).endswith(".bool") else xp.sub
    for _ in range(min(n, input.shape[axis])):
        length = input.shape[axis]
        input = subtract(xp.slice(input, dim, 1, length), xp.slice(input, dim, 0, max(length - 1, 0)))
    return input


def _spacing(name, y, x, dx, dim):
    """Check the inputs and return `x` in a shape that broadcasts to `y`; None where the spacing is `dx`."""
    if any(tensor is not None and tensor.dtype.name == "bool" for tensor in (x, y)):
        names = "`y`" if x is None else "`x` or `y`"
        raise RuntimeError(f"{name}: received a bool input for {names}, but bool is not supported")
    if x is None:
        if isinstance(dx, (bool, complex)):
            raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")
        return None
    if len(x.shape) == 1:
        if x.shape[0] != y.shape[dim]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        shape = [1] * len(y.shape)
        shape[dim] = x.shape[0]
        return x.reshape(shape)
    if len(x.shape) < len(y.shape):
        return x.reshape([1] * (len(y.shape) - len(x.shape)) + list(x.shape))
    return x


def _axis(y, dim):
    if not len(y.shape):
        wrap_dim(dim, 0)
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, len(y.shape))


def _adjacent_differences(xp, x, dim):
    return xp.slice(x, dim, 1) - xp.slice(x, dim, 0, -1)


def _adjacent_sums(xp, y, dim):
    return xp.slice(y, dim, 0, -1) + xp.slice(y, dim, 1)


@composite(aliases=("trapz",), expose=("torch",))
def trapezoid(xp, y, x=None, *, dx=1, dim=-1):
    """The integral of `y` along `dim` by the trapezoidal rule.

    Args:
        x: the sample points, broadcastable to `y` or a vector of its length along `dim`.
        dx: the spacing of the sample points where `x` is not given.

    >>> import flambeau as torch
    >>> torch.trapezoid(torch.tensor([1., 5., 10.]))
    tensor(10.5000)
    """
    axis = _axis(y, dim)
    if y.shape[axis] == 0:
        return xp.sum(xp.zeros_like(y), axis)
    x = _spacing("trapezoid", y, x, dx, axis)
    if x is None:
        return xp._mul_scalar(xp.sum(y, dim) - xp._mul_scalar(
            xp.select(y, dim, 0) + xp.select(y, dim, -1), other=0.5), other=dx)
    return xp._div_scalar(xp.sum(_adjacent_sums(xp, y, axis) * _adjacent_differences(xp, x, axis), axis), other=2.0)


@composite(expose=("torch",))
def cumulative_trapezoid(xp, y, x=None, *, dx=1, dim=-1):
    """The cumulative integral of `y` along `dim` by the trapezoidal rule; `x` and `dx` as in `trapezoid`.

    >>> import flambeau as torch
    >>> torch.cumulative_trapezoid(torch.tensor([1., 5., 10.]))
    tensor([ 3.0000, 10.5000])
    """
    if x is not None and "bool" in (x.dtype.name, y.dtype.name):
        raise RuntimeError("cumulative_trapezoid: received a bool input for `x` or `y`, but bool is not supported")
    if not len(y.shape):
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if x is None and y.dtype.name == "bool":
        raise RuntimeError("cumulative_trapezoid: received a bool input for `y`, but bool is not supported")
    axis = _axis(y, dim)
    x = _spacing("cumulative_trapezoid", y, x, dx, axis)
    if x is None:
        return xp.cumsum(xp._mul_scalar(_adjacent_sums(xp, y, dim), other=dx / 2), dim)
    return xp._div_scalar(xp.cumsum(_adjacent_sums(xp, y, axis) * _adjacent_differences(xp, x, axis), axis), other=2.0)
