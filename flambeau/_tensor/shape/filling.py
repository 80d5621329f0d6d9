"""Fills: one value in all elements, or on the diagonal, in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...backends.bit_views import resolve
from ...backends.compiled import copy, copy_kernels
from ...backends.compiled.thresholds import COPIES
from ...backends.numpy.memory import check_scalar_fits, convert_scalar, element_strides
from ...backends.sparse_array import SparseAccess
from ...modes import special
from ...ops.declare import REGISTRY
from ..dispatch.apply import apply
from ..dispatch.inplace import apply_inplace, overwrite
from ..dispatch.write_checks import check_overlap, check_writable, is_tracked, warn_of_real_parts
from ..tensor import Tensor

__all__ = ["fill", "zero_"]


def fill_(self: Tensor, value: Any) -> Tensor:
    """Set every element to `value`, a scalar or a 0-d tensor.

    >>> import flambeau as torch
    >>> torch.zeros(2).fill_(3)
    tensor([3., 3.])
    """
    try:
        a = self._array
    except AttributeError as error:
        from ..argument_errors.messages import FUNCTION, explained  # imported when it fails only

        raise explained(FUNCTION, "fill_", (self, value), {}) or error from None
    if isinstance(value, Tensor):
        check_writable(self, is_tracked((self, value)))
        if value._array.ndim:
            raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value._array.ndim} "
                               "dimensions.")
        number = resolve(value._array)
        check_overlap(a)
        if dtypes.is_complex(number.dtype):
            warn_of_real_parts(self)

        def compute() -> None:
            a[...] = dtypes.cast(number, a.dtype)

        return overwrite(REGISTRY["_fill_tensor_"], [self, value], {}, compute)
    if not isinstance(value, (bool, int, float, complex, np.generic)):
        from ..argument_errors.messages import unfit  # imported when it fails only

        raise unfit(("fill_",), (self, value), {}) or TypeError(f"fill_(): {value!r} is no number")
    check_scalar_fits(value, self.dtype)

    def compute_number() -> None:
        copy(a, convert_scalar(value, a.dtype))

    return overwrite(REGISTRY["_fill_scalar_"], [self], {"value": value}, compute_number)


def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor of `input`'s shape with every element `value`.

    >>> import flambeau as torch
    >>> torch.fill(torch.zeros(2), 3)
    tensor([3., 3.])
    """
    if isinstance(value, Tensor):
        if value._array.ndim:
            raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value._array.ndim} "
                               "dimensions.")
        return apply(REGISTRY["_fill_tensor"], [input, value])
    check_scalar_fits(value, input.dtype)
    return apply(REGISTRY["_fill_scalar"], [input], {"value": value})


class _Zeros(dict):
    """The zero of each dtype, cached."""

    def __missing__(self, dtype: np.dtype) -> Any:
        made = self[dtype] = np.zeros((), dtype)[()]
        return made


_zeros = _Zeros()


def zero_(input: Tensor) -> Tensor:
    """Set every element to zero.

    >>> import flambeau as torch
    >>> torch.ones(2).zero_()
    tensor([0., 0.])
    """
    a = input._array
    try:
        owns = a.flags.owndata
    except SparseAccess:
        return apply_inplace(REGISTRY["_zero"], [input], {})
    if not (input._requires_grad or input._base is not None or special[0] or input._inference) and owns:
        if not a.ndim:
            a[()] = _zeros[a.dtype]
        else:
            kernels = copy_kernels() if a.size > COPIES[0] else None  # nothing to record: the case of `zero_grad`
            if kernels is None or not kernels.copy(a, np.asarray(_zeros[a.dtype])):
                a.fill(_zeros[a.dtype])
        counter = input._counter
        if counter is None:
            input._counter = [1]
        else:
            counter[0] += 1
        return input

    def compute() -> None:
        copy(a, np.zeros((), a.dtype))

    return overwrite(REGISTRY["_zero"], [input], {}, compute)


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Set the main diagonal to a scalar; with `wrap`, of a tall matrix also the diagonals of the blocks below.

    >>> import flambeau as torch
    >>> torch.zeros(2, 2).fill_diagonal_(1)
    tensor([[1., 0.],
            [0., 1.]])
    """
    a = self._array
    if a.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if a.ndim > 2 and len(set(a.shape)) != 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    from .strides import as_strided

    strides = element_strides(a)
    step = sum(strides)
    length = min(a.shape)
    if wrap and a.ndim == 2 and a.shape[0] > a.shape[1] + 1:
        rows, columns = a.shape
        length = -(-rows * columns // (columns + 1)) if a.flags.c_contiguous else length
        if not a.flags.c_contiguous:
            for start in range(columns + 1, rows, columns + 1):
                fill_diagonal_(self[start:], fill_value)
    offset = self.storage_offset()
    fill_(as_strided(self, (length,), (step,), offset), fill_value)
    return self


METHODS: dict[str, Any] = {"fill_": fill_, "zero_": zero_, "fill_diagonal_": fill_diagonal_}
