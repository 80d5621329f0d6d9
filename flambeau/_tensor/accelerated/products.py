"""Matrix products on a device by cuBLAS: which operators are products, and how their matrices lie in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import dtypes
from ...backends import cuda_settings
from ...backends.cuda_devices import current_runtime
from ...backends.cuda_devices.array import DeviceArray
from ...backends.cuda_devices.cublaslt import adds_bias
from ...backends.cuda_devices.runtime import Place, Product
from ...ops.declare import Op
from ..tensor import Tensor

_DTYPES = (*(np.dtype(each) for each in ("f2", "f4", "f8", "c8", "c16")), dtypes.BFLOAT16)
#: operators -> the position of the first factor; before it, what is added
_FACTORS = {"mm": 0, "bmm": 0, "linear_nobias": 0, "addmm": 1, "baddbmm": 1}


class _Matrices(NamedTuple):
    """A batch of matrices as cuBLAS reads them.

    Attributes:
        array: their memory.
        transposed: whether they are stored column by column.
        row: the distance of neighbouring rows (or columns), in elements.
        step: the distance of neighbouring matrices, in elements.
    """

    array: DeviceArray
    transposed: bool
    row: int
    step: int


def run(op: Op, inputs: Sequence[Any], params: dict[str, Any], device: int) -> Any:
    """The result of a product, in a list; NotImplemented for other operators, dtypes and broadcasts.

    Raises:
        RuntimeError: the shapes do not fit (the operator's text).
    """
    first = _FACTORS.get(op.name)
    if first is None:
        return NotImplemented
    tensors = [x._array for x in inputs if isinstance(x, Tensor)]
    if len(tensors) != len(inputs) or len(tensors) != first + 2 or any(
            each.__class__ is not DeviceArray or each.dtype != tensors[0].dtype for each in tensors):
        return NotImplemented
    if tensors[0].dtype not in _DTYPES:
        return NotImplemented
    if op.check is not None:
        op.check(*inputs)
    a, b = tensors[first:]
    if op.name == "linear_nobias":
        b = b.transpose(1, 0)
    if a.ndim != b.ndim or a.ndim not in (2, 3):
        return NotImplemented
    shape = (*a.shape[:-1], b.shape[-1])
    runtime = current_runtime()
    result = runtime.empty(device, shape, a.dtype)
    alpha, beta = params.get("alpha", 1), params.get("beta", 1) if first else 0
    m, n = shape[-2:]
    if first and len(shape) == 2 and alpha == beta == 1 and _is_vector(tensors[0], n) and adds_bias(
            a.dtype, m, n, a.shape[-1]):
        _multiply(a, b, result, 1, 0, tensors[0])
        return [result]
    if beta:
        runtime.copy_between(result, np.broadcast_to(tensors[0], shape, subok=True))
    _multiply(a, b, result, alpha, beta)
    return [result]


def _is_vector(bias: np.ndarray, n: int) -> bool:
    """Whether what is added is a row of n contiguous elements."""
    return bias.shape == (n,) and (n == 1 or bias.strides[0] == bias.itemsize)


def _multiply(a: Any, b: Any, c: DeviceArray, alpha: complex, beta: complex, bias: Any = None) -> None:
    runtime = current_runtime()
    x, y, z = _matrices(a), _matrices(b), _matrices(c)
    runtime.multiply(Product(
        _place(x), _place(y), _place(z), a.dtype, a.shape[-2], b.shape[-1],
        a.shape[-1], (x.transposed, y.transposed), (x.row, y.row, z.row), (x.step, y.step, z.step),
        a.shape[0] if a.ndim == 3 else 1, alpha, beta, bool(cuda_settings.NAMES["matmul"].allow_tf32),
        bias=None if bias is None else (bias.memory, bias.byte_offset)))


def _place(matrices: _Matrices) -> Place:
    return matrices.array.memory, matrices.array.byte_offset


def _matrices(array: DeviceArray) -> _Matrices:
    """The matrices of an array; of a copy where neither rows nor columns are contiguous."""
    size = array.itemsize
    rows, columns = array.shape[-2:]
    down, across = (stride // size for stride in array.strides[-2:])
    step = array.strides[0] // size if array.ndim == 3 else 0
    if (columns == 1 or across == 1) and (rows == 1 or down >= columns):
        return _Matrices(array, False, max(columns, 1) if rows == 1 else down, step)
    if (rows == 1 or down == 1) and (columns == 1 or across >= rows):
        return _Matrices(array, True, max(rows, 1) if columns == 1 else across, step)
    runtime = current_runtime()
    copied = runtime.empty(array.torch_device.index, array.shape, array.dtype)
    runtime.copy_between(copied, array)
    return _matrices(copied)


__all__ = ["run"]
