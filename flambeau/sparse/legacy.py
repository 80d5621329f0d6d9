"""The legacy constructors `torch.sparse.FloatTensor(indices, values, size)`, one for each dtype."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from .._tensor import Tensor
from .._tensor.sparse.constructors import coo, empty_coo, sparse_coo_tensor


class _LegacyType(type):
    """The class of the legacy constructors: instances are COO tensors of their dtype."""

    dtype: dtypes.dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.is_sparse and instance.dtype is cls.dtype

    def __repr__(cls) -> str:
        return f"<class 'torch.sparse.{cls.__name__}'>"

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        kwargs.pop("device", None)
        if not args:
            return empty_coo((0,), 1, 0, cls.dtype)
        if isinstance(args[0], Tensor) and len(args) > 1:
            indices, values, *rest = args
            if not rest:
                return sparse_coo_tensor(indices, values, dtype=cls.dtype, check_invariants=False)
            return coo(indices.to(dtypes.int64), values.to(cls.dtype), tuple(map(int, rest[0])))
        if len(args) == 1 and isinstance(args[0], (tuple, list)):
            args = tuple(args[0])
        return empty_coo(tuple(map(int, args)), len(args), 0, cls.dtype)


def _legacy(dtype: dtypes.dtype) -> Any:
    name = dtype.legacy
    example = f"torch.sparse.{name}(2, 3).shape"
    doc = (f"Legacy constructor of COO tensors of dtype {dtype.name}; use `torch.sparse_coo_tensor`.\n\n"
           f"    >>> import flambeau as torch\n    >>> {example}\n    flambeau.Size([2, 3])\n    ")
    return _LegacyType(name, (), {"dtype": dtype, "__doc__": doc, "__module__": __name__})


ByteTensor, CharTensor, ShortTensor = _legacy(dtypes.uint8), _legacy(dtypes.int8), _legacy(dtypes.int16)
IntTensor, LongTensor, HalfTensor = _legacy(dtypes.int32), _legacy(dtypes.int64), _legacy(dtypes.float16)
FloatTensor, DoubleTensor, BFloat16Tensor = (
    _legacy(dtypes.float32), _legacy(dtypes.float64), _legacy(dtypes.bfloat16))

__all__ = ["BFloat16Tensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor",
           "LongTensor", "ShortTensor"]
