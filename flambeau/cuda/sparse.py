"""`torch.cuda.sparse`: legacy types of sparse tensors on GPUs, which are absent."""

from __future__ import annotations

from .. import dtypes
from . import _tensor_type

for _prefix, _dtype in (("Double", dtypes.float64), ("Float", dtypes.float32), ("Half", dtypes.float16),
                        ("BFloat16", dtypes.bfloat16), ("Long", dtypes.int64), ("Int", dtypes.int32),
                        ("Short", dtypes.int16), ("Char", dtypes.int8), ("Byte", dtypes.uint8)):
    globals()[f"{_prefix}Tensor"] = _tensor_type(f"{_prefix}Tensor", _dtype)
