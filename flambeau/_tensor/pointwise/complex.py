"""Real and imaginary parts of complex tensors, as views, and conjugation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...backends.bit_views import bits_of
from ...backends.elementless_array import ElementlessArray
from ...engine.tensor_interface import layer
from ...modes import dispatch_in_use
from ...ops.declare import REGISTRY
from ..dispatch.apply import apply
from ..dispatch.public_functions import public_function
from ..overriding.other_objects import with_other_object
from ..tensor import Tensor

__all__ = ["conj_physical", "imag", "is_conj", "is_neg", "real", "resolve_conj", "resolve_neg"]


def _component(input: Tensor, index: int) -> Tensor:
    if bits_of(input._array)[0]:
        pairs = apply(REGISTRY["view_as_real"], [conj(input)])
        if index:
            pairs = apply(REGISTRY["_neg_view"], [pairs])
    else:
        pairs = apply(REGISTRY["view_as_real"], [input])
    return apply(REGISTRY["select"], [pairs], {"dim": input.dim(), "index": index})


def real(input: Tensor) -> Tensor:
    """The real part, a view; a real tensor itself.

    >>> import flambeau as torch
    >>> torch.real(torch.tensor([1 + 2j]))
    tensor([1.])
    """
    return _component(input, 0) if dtypes.is_complex(input._array.dtype) else input


def imag(input: Tensor) -> Tensor:
    """The imaginary part, a view.

    Raises:
        RuntimeError: the tensor is not complex.

    >>> import flambeau as torch
    >>> torch.imag(torch.tensor([1 + 2j]))
    tensor([2.])
    """
    if not dtypes.is_complex(input._array.dtype):
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return _component(input, 1)


def conj(input: Tensor) -> Tensor:
    """The complex conjugate, a view with the conjugate bit (`is_conj`); a real tensor itself.

    That of a batched tensor or one of complex32 is computed, as it is where `__torch_dispatch__` receives operators.

    >>> import flambeau as torch
    >>> x = torch.tensor([1 + 2j])
    >>> torch.conj(x), torch.conj(x).is_conj()
    (tensor([1.-2.j]), True)
    """
    try:
        kind = input._array.dtype.kind
    except AttributeError as error:
        return with_other_object(error, conj, (input,))
    if kind != "c":
        return _computed_conj(input)
    if not isinstance(input._array, np.ndarray) or isinstance(input._array, ElementlessArray) or dispatch_in_use[0]:
        return apply(REGISTRY["conj"], [input])
    return apply(REGISTRY["_conj_view"], [input])


_conj = conj


def _computed_conj(input: Tensor) -> Tensor:
    """The complex conjugate in memory of its own; a real tensor itself. Derivatives use it.

    >>> import flambeau as torch
    >>> torch.conj(torch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return apply(REGISTRY["conj"], [input]) if dtypes.is_complex(input._array.dtype) else input


def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex conjugate, computed at once; a real tensor itself.

    >>> import flambeau as torch
    >>> torch.conj_physical(torch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    if out is None and not dtypes.is_complex(input._array.dtype):
        return input
    return public_function(REGISTRY["conj_physical"])(input, out=out)


def resolve_conj(input: Tensor) -> Tensor:
    """A copy with the conjugates in its memory if the conjugate bit is set, else the tensor itself.

    >>> import flambeau as torch
    >>> torch.resolve_conj(torch.tensor([1 + 2j]).conj()).is_conj()
    False
    """
    return layer.functions.clone(input) if bits_of(input._array)[0] else input


def resolve_neg(input: Tensor) -> Tensor:
    """A copy with the negatives in its memory if the negative bit is set, else the tensor itself.

    >>> import flambeau as torch
    >>> torch.resolve_neg(torch.tensor([1 + 2j]).conj().imag).is_neg()
    False
    """
    return layer.functions.clone(input) if bits_of(input._array)[1] else input


def is_conj(input: Tensor) -> bool:
    """Whether the conjugate bit is set: the memory holds the conjugates of the elements.

    >>> import flambeau as torch
    >>> torch.is_conj(torch.tensor(1j).conj())
    True
    """
    return bits_of(input._array)[0]


def is_neg(input: Tensor) -> bool:
    """Whether the negative bit is set: the memory holds the negatives of the elements.

    >>> import flambeau as torch
    >>> torch.is_neg(torch.tensor(1j).conj().imag)
    True
    """
    return bits_of(input._array)[1]


def _set_real(self: Tensor, value: Any) -> None:
    real(self).copy_(value)


def _set_imag(self: Tensor, value: Any) -> None:
    imag(self).copy_(value)


METHODS: dict[str, Any] = {"real": property(real, _set_real), "imag": property(imag, _set_imag), "conj": conj,
                           "_conj": conj, "is_conj": is_conj, "is_neg": is_neg, "resolve_conj": resolve_conj,
                           "resolve_neg": resolve_neg}
