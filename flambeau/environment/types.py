"""`torch.types`: names for the types of arguments."""

from __future__ import annotations

import os
from builtins import bool as _bool
from builtins import bytes as _bytes
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from collections.abc import Sequence
from typing import IO, TypeAlias

from .._tensor import Tensor
from .._tensor.memory.storage import UntypedStorage as Storage
from ..devices import device as _device
from ..devices import layout as _layout
from ..dtypes import dtype as _dtype
from ..shapes import Size
from .symbolic import SymBool, SymFloat, SymInt

_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_symsize: TypeAlias = Size | Sequence[int | SymInt]
IntLikeType: TypeAlias = int | SymInt
FloatLikeType: TypeAlias = float | SymFloat
BoolLikeType: TypeAlias = bool | SymBool
py_sym_types = (SymInt, SymFloat, SymBool)
PySymType: TypeAlias = SymInt | SymFloat | SymBool
Number: TypeAlias = int | float | bool
_Number = (int, float, bool)
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
Device: TypeAlias = _device | str | int | None

__all__ = ["Device", "FileLike", "Number", "Storage", "_bool", "_bytes", "_complex", "_device", "_dtype", "_float",
           "_int", "_layout", "_size", "_str"]
