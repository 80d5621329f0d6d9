"""Weights as stored bytes: as they are, in bfloat16, or in int8 with a scale per row; inside the file or beside it.

A file beside is a safetensors file: 8 bytes with the length of a JSON header, the header, and the tensors without gaps.
Numbers of the largest elements come first, so that every tensor is aligned to its elements.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from ...dtypes import BFLOAT16, to_bfloat16

#: alignment of tensors in memory
ALIGNMENT = 64
#: smallest number of elements of a tensor that is stored in fewer bits
MIN_ELEMENTS = 256


class Storage(IntEnum):
    """How a tensor is stored."""

    RAW = 0
    BFLOAT16 = 1
    INT8 = 2


class Segment(NamedTuple):
    """A stored tensor.

    Attributes:
        storage: how it is stored.
        target: its offset in memory.
        source: its offset in the stored bytes.
        rows, columns: its elements; bytes, in one row, if it is raw.
        scales: the offset of the rows' scales in the stored bytes.
    """

    storage: Storage
    target: int
    source: int
    rows: int
    columns: int
    scales: int


class StoredWeights(NamedTuple):
    """The weights of a program.

    Attributes:
        offsets: by tensor, the offset in memory.
        memory: bytes of the memory.
        stored: the stored bytes, without the header.
        segments: how they become memory; empty if they are it.
        header: the bytes before them in a file beside; empty if they are inside.
    """

    offsets: list[int]
    memory: int
    stored: np.ndarray
    segments: list[Segment]
    header: bytes

    @property
    def is_parameter(self) -> bool:
        """Whether each run is given the weights."""
        return bool(self.header or self.segments)

    @property
    def file(self) -> bytes:
        """The file beside."""
        return self.header + self.stored.tobytes()


#: dtypes of `weight_dtype=`
DTYPES = {None: Storage.RAW, "bfloat16": Storage.BFLOAT16, "int8": Storage.INT8}


def store(names: Sequence[str], arrays: Sequence[np.ndarray], dtype: str | None, beside: bool) -> StoredWeights:
    """Store tensors.

    Args:
        names: of the tensors, all different.
        arrays: the tensors, dense in the order of their memory.
        dtype: the dtype of large float32 tensors of two or more dimensions: None, "bfloat16" or "int8".
        beside: whether they are in a file of their own.
    """
    kinds = [_storage_of(array, dtype) for array in arrays]
    pieces: list[tuple[str, np.ndarray, str]] = []  # name, array, name of the dtype in safetensors
    for name, array, kind in zip(names, arrays, kinds, strict=True):
        if kind is Storage.INT8:
            quantized, scales = quantize(array)
            pieces += [(name, quantized, "I8"), (f"{name}.scale", scales, "F32")]
        else:
            stored = to_bfloat16(array) if kind is Storage.BFLOAT16 else array
            pieces.append((name, stored, _safetensors_name(stored.dtype)))
    if beside:
        pieces.sort(key=lambda piece: -piece[1].dtype.itemsize)
    places, at = {}, 0
    for name, array, _ in pieces:
        at = at if beside else -(-at // ALIGNMENT) * ALIGNMENT
        places[name] = at
        at += array.nbytes
    data = np.zeros(at, np.uint8)
    for name, array, _ in pieces:
        data[places[name] : places[name] + array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
    header = _header(pieces, places, data) if beside else b""
    if dtype is None:
        return StoredWeights([places[name] for name in names], at, data, [], header)
    offsets, total, segments = [], 0, []
    for name, array, kind in zip(names, arrays, kinds, strict=True):
        total = -(-total // ALIGNMENT) * ALIGNMENT
        rows = len(array) if kind is Storage.INT8 else 1
        columns = array.nbytes if kind is Storage.RAW else array.size // rows
        segments.append(Segment(kind, total, places[name], rows, columns, places.get(f"{name}.scale", 0)))
        offsets.append(total)
        total += array.nbytes
    return StoredWeights(offsets, total, data, segments, header)


def _storage_of(array: np.ndarray, dtype: str | None) -> Storage:
    is_large = array.dtype == np.float32 and array.ndim >= 2 and array.size >= MIN_ELEMENTS
    return DTYPES[dtype] if is_large else Storage.RAW


def quantize(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A tensor as int8 and a scale for each index of its first dimension: x ≈ q · scale, |q| ≤ 127.

    >>> q, scale = quantize(np.float32([[1, -2], [0, 0]]))
    >>> (q * scale[:, None]).tolist()[0][1], scale[1].item()
    (-2.0, 1.0)
    """
    rows = array.reshape(len(array), -1)
    scales = (np.abs(rows).max(1) / 127).astype(np.float32)
    scales[scales == 0] = 1
    quantized = np.clip(np.rint(rows / scales[:, None]), -127, 127).astype(np.int8)
    return quantized.reshape(array.shape), scales


_NAMES = {"float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "int16": "I16",
          "int8": "I8", "uint8": "U8", "bool": "BOOL", "uint16": "U16", "uint32": "U32", "uint64": "U64",
          "complex64": "C64"}  # fmt: skip


def _safetensors_name(dtype: np.dtype) -> str:
    return "BF16" if dtype == BFLOAT16 else _NAMES.get(dtype.name, "U8")


def _header(pieces: Sequence[tuple[str, np.ndarray, str]], places: dict[str, int], data: np.ndarray) -> bytes:
    """The header, padded so that the tensors begin at a multiple of `ALIGNMENT`; it has a hash of them."""
    table: dict[str, object] = {"__metadata__": {"sha256": hashlib.sha256(data.tobytes()).hexdigest()}}
    for name, array, kind in pieces:
        shape = array.shape if kind != "U8" or array.dtype == np.uint8 else (array.nbytes,)
        table[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [places[name], places[name] + array.nbytes]}
    text = json.dumps(table, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


__all__ = ["ALIGNMENT", "DTYPES", "Segment", "Storage", "StoredWeights", "quantize", "store"]
