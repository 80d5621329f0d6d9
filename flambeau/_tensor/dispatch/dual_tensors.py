"""Dual tensors: PyTorch's interface to forward mode (`torch.autograd.forward_ad`)."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from ...backends.bit_views import memory_of, with_bits_of
from ...backends.numpy.memory import address, owner, strided_view
from ...engine.tensor_interface import layer
from ...modes import dispatch_in_use, inference
from ..tensor import Tensor, wrap
from .batched_tensor import gradient_for_batched, gradient_for_value, make_batched
from .forward_mode import close_level, open_level, set_tangent, strip_levels, tangent_of

_dual_levels: list[int] = []  # the levels that `dual_level` opened: at most one


class UnpackedDualTensor(NamedTuple):
    """The primal and the tangent of a tensor; the tangent is None if it has none.

    >>> import flambeau as torch
    >>> import flambeau.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     primal, tangent = fwAD.unpack_dual(fwAD.make_dual(torch.tensor(3.), torch.tensor(1.)))
    >>> primal, tangent
    (tensor(3.), tensor(1.))
    """

    primal: Any
    tangent: Any


def enter_dual_level() -> int:
    """Enter a level of forward mode and return its number.

    Raises:
        RuntimeError: a level is open already.

    >>> import flambeau.autograd.forward_ad as fwAD
    >>> fwAD.enter_dual_level()
    0
    >>> fwAD.exit_dual_level()
    """
    if _dual_levels:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _dual_levels.append(open_level())
    return len(_dual_levels) - 1


def exit_dual_level(*, level: int | None = None) -> None:
    """Exit the current level and drop its tangents.

    Raises:
        RuntimeError: no level is open, or `level` is not the innermost one.

    >>> import flambeau.autograd.forward_ad as fwAD
    >>> level = fwAD.enter_dual_level()
    >>> fwAD.exit_dual_level(level=level)
    """
    if not _dual_levels:
        raise RuntimeError("Dual level must be a positive number.")
    if level is not None and level != len(_dual_levels) - 1:
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not "
                           "supported.")
    close_level(_dual_levels.pop())


class dual_level:
    """Context manager of a level of forward mode.

    >>> import flambeau as torch
    >>> import flambeau.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(torch.tensor(3.), torch.tensor(1.))
    ...     fwAD.unpack_dual(x * x).tangent
    tensor(6.)
    """

    def clone(self) -> dual_level:
        """A new context manager."""
        return dual_level()

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception: object) -> None:
        exit_dual_level()

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with dual_level():
                return function(*args, **kwargs)
        return wrapped


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A dual tensor: a view of `tensor` with a tangent.

    Args:
        tensor: the primal, of any shape, floating point or complex.
        tangent: of the primal's shape.

    Raises:
        RuntimeError: no level is open, or the shapes differ.
        ValueError: the tensor or the tangent is not floating point or complex.

    >>> import flambeau as torch
    >>> import flambeau.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     fwAD.make_dual(torch.tensor(3.), torch.tensor(1.))
    tensor(3., tangent=1.0)
    """
    if not _dual_levels:
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, make sure to "
                           "enter_dual_level() first.")
    return make_dual_at_level(tensor, tangent, _dual_levels[-1])


def make_dual_at_level(tensor: Tensor, tangent: Tensor, level: int) -> Tensor:
    """`make_dual` at a given level."""
    for x, what in ((tensor, "primal"), (tangent, "tangent")):
        if x._array.dtype.kind not in "fcV":
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {x.dtype}")
    if tensor._array.shape != tangent._array.shape:
        raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original "
                           f"Tensor, this is not supported. Tensor is of size {list(tensor._array.shape)} while the "
                           f"given forward gradient is of size {list(tangent._array.shape)}.")
    if tangent_of(tensor, level) is not None:
        raise RuntimeError("Making a dual Tensor based on a Tensor that already has a forward gradient at the same "
                           f"level {_public_level(level)} is not supported.")
    if tangent_of(tangent, level) is not None:
        raise RuntimeError("Setting a forward grad that itself has a forward gradient at the same level"
                           f"{_public_level(level)} is not supported.")
    if not isinstance(tensor._array, ndarray):
        inner = layer.functions.view_as(tensor._value, tensor._value)
        set_tangent(inner, gradient_for_value(tangent, tensor), level)
        return make_batched(inner, tensor._levels)
    out = layer.functions.view_as(tensor, tensor)
    set_tangent(out, _with_layout_of(tangent, tensor._array), level)
    return out


def _public_level(level: int) -> int:
    """The number of a level in error messages: the index among the levels of `dual_level`."""
    return _dual_levels.index(level) if level in _dual_levels else level


def _with_layout_of(tangent: Tensor, primal: ndarray) -> Tensor:
    """A tangent with the memory layout of its primal, so that every view of the primal is a view of the tangent."""
    a = tangent._array
    if not isinstance(a, ndarray) or a.dtype != primal.dtype or (not a.size and a.base is None):
        return tangent
    if dispatch_in_use[0] and layer.is_handled(tangent):
        return tangent
    storage = owner(primal)
    same_bits = a.__class__ is primal.__class__
    dense = a.strides == primal.strides or all(n == 1 or s == t for n, s, t in zip(a.shape, a.strides, primal.strides,
                                                                                   strict=True))
    if same_bits and dense and storage.nbytes <= owner(a).nbytes:
        return tangent
    if same_bits and primal.size and (
            0 in primal.strides or (not primal.flags.forc and storage.nbytes < primal.nbytes)):
        return tangent
    memory = np.zeros(storage.nbytes // primal.itemsize, memory_of(primal).dtype)
    strides = tuple(s // primal.itemsize for s in primal.strides)
    offset = (address(primal) - address(storage)) // primal.itemsize
    out: Tensor = wrap(with_bits_of(strided_view(memory, primal.shape, strides, offset), primal))
    return out.copy_(tangent)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal and tangent of a dual tensor; the tangent of any other tensor is None.

    >>> import flambeau as torch
    >>> import flambeau.autograd.forward_ad as fwAD
    >>> fwAD.unpack_dual(torch.tensor(3.)).tangent is None
    True
    """
    return unpack_dual_at_level(tensor, _dual_levels[-1]) if _dual_levels else UnpackedDualTensor(tensor, None)


def unpack_dual_at_level(tensor: Tensor, level: int) -> UnpackedDualTensor:
    """`unpack_dual` at a given level."""
    if not isinstance(tensor._array, ndarray):
        primal, tangent = unpack_dual_at_level(tensor._value, level)
        return UnpackedDualTensor(make_batched(primal, tensor._levels),
                                  None if tangent is None else gradient_for_batched(tangent, tensor))
    tangent = None if inference.get() else tangent_of(tensor, level)
    return UnpackedDualTensor(tensor if tangent is None else strip_levels(tensor, level), tangent)
