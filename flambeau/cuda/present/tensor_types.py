"""The legacy classes of tensors of CUDA devices, `torch.cuda.FloatTensor` and its like."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ..._tensor import Tensor, functions


class _TensorType(type):
    """The class of such a type: tensors of its dtype on a CUDA device are its instances."""

    dtype: dtypes.dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.is_cuda and instance.dtype is cls.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """A tensor of the sizes, or of the data, that are given."""
        device = kwargs.get("device", "cuda")
        if len(args) == 1 and not isinstance(args[0], int):
            return functions.tensor(args[0], dtype=cls.dtype, device=device)
        return functions.empty(args or (0,), dtype=cls.dtype, device=device)


def _tensor_type(name: str, dtype: dtypes.dtype) -> type:
    return _TensorType(name, (), {"__module__": "torch.cuda", "dtype": dtype, "is_cuda": True,
                                  "__doc__": f"Tensors of {dtype.name} on a CUDA device."})


NAMES: dict[str, Any] = {f"{prefix}Tensor": _tensor_type(f"{prefix}Tensor", dtype) for prefix, dtype in (
    ("BFloat16", dtypes.bfloat16), ("Bool", dtypes.bool_), ("Byte", dtypes.uint8), ("Char", dtypes.int8),
    ("Double", dtypes.float64), ("Float", dtypes.float32), ("Half", dtypes.float16), ("Int", dtypes.int32),
    ("Long", dtypes.int64), ("Short", dtypes.int16))}

__all__ = ["NAMES"]
