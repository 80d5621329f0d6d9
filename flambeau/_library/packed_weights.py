"""Products with weights of 8 bits, which PyTorch's quantized models call: `torch._weight_int8pack_mm`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dtypes
from .._tensor import functions


def _weight_int8pack_mm(self: Any, mat2: Any, scales: Any) -> Any:
    """self · mat2ᵀ · diag(scales), added in float32 and rounded once.

    Args:
        self: (M, K), of 16 or 32 bits.
        mat2: (N, K), int8.
        scales: (N,), as `self`.

    Raises:
        RuntimeError: a shape or dtype does not fit.
    """
    columns, rows = self.size(1), mat2.size(0)
    for text, holds in (
            ("A must be contiguous on the last dimension.", self.stride(-1) == 1),
            ("expect A to be either 32-bit or 16-bit float tensor.",
             self.dtype in (dtypes.float32, dtypes.float16, dtypes.bfloat16)),
            ("expect A to be 2D tensor.", self.dim() == 2), ("expect B to be int8 tensor.", mat2.dtype is dtypes.int8),
            ("expect B to be contiguous.", mat2.is_contiguous()),
            (f"expect B.size(1) == {columns}", mat2.size(1) == columns),
            (f"expect scales to be 1d tensor with size {rows}", scales.dim() == 1 and scales.size(0) == rows)):
        if not holds:
            raise RuntimeError(f"_weight_int8pack_mm_cpu : {text}")
    if scales.dtype is not self.dtype:
        raise RuntimeError(f"expected scalar type {self.dtype.scalar_name} but found {scales.dtype.scalar_name}")
    wide = self.to(dtypes.float32)
    product = functions.matmul(wide, mat2.to(dtypes.float32).t()) * scales.to(dtypes.float32)
    return product.to(self.dtype)


#: "aten.name.overload" -> function with the schema's arguments
KERNELS: dict[str, Callable[..., Any]] = {"aten._weight_int8pack_mm.default": _weight_int8pack_mm}
