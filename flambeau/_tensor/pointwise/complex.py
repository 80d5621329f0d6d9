"""Real and imaginary parts of complex tensors, as views, and conjugation."""

from __future__ import annotations

from typing import Any

from ...ops.declare import REGISTRY
from ..dispatch.apply import apply
from ..tensor import Tensor

__all__ = ["conj", "imag", "is_conj", "is_neg", "real"]


def _component(input: Tensor, index: int) -> Tensor:
    pairs = apply(REGISTRY["view_as_real"], [input])
    return apply(REGISTRY["select"], [pairs], {"dim": -1, "index": index})


def real(input: Tensor) -> Tensor:
    """The real part, a view; a real tensor itself.

    >>> import flambeau as torch
    >>> torch.real(torch.tensor([1 + 2j]))
    tensor([1.])
    """
    return _component(input, 0) if input._array.dtype.kind == "c" else input


def imag(input: Tensor) -> Tensor:
    """The imaginary part, a view.

    Raises:
        RuntimeError: the tensor is not complex.

    >>> import flambeau as torch
    >>> torch.imag(torch.tensor([1 + 2j]))
    tensor([2.])
    """
    if input._array.dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return _component(input, 1)


def conj(input: Tensor) -> Tensor:
    """The complex conjugate; a real tensor itself.

    >>> import flambeau as torch
    >>> torch.conj(torch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    if input._array.dtype.kind != "c":
        return input
    return apply(REGISTRY["conj"], [input])


def is_conj(input: Tensor) -> bool:
    """Whether the conjugate bit is set: never; `conj` is computed eagerly.

    >>> import flambeau as torch
    >>> torch.is_conj(torch.tensor(1j).conj())
    False
    """
    return False


def is_neg(input: Tensor) -> bool:
    """Whether the negative bit is set: never.

    >>> import flambeau as torch
    >>> torch.is_neg(torch.ones(1))
    False
    """
    return False


def _set_real(self: Tensor, value: Any) -> None:
    real(self).copy_(value)


def _set_imag(self: Tensor, value: Any) -> None:
    imag(self).copy_(value)


METHODS: dict[str, Any] = {"real": property(real, _set_real), "imag": property(imag, _set_imag), "conj": conj,
                           "is_conj": is_conj, "is_neg": is_neg}
