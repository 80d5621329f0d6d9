"""Files in the safetensors format: the length of a JSON header, 8 bytes, the header, and the tensors without gaps."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import dtypes

_NAMES = {dtypes.float64: "F64", dtypes.float32: "F32", dtypes.float16: "F16", dtypes.bfloat16: "BF16",
          dtypes.int64: "I64", dtypes.int32: "I32", dtypes.int16: "I16", dtypes.int8: "I8", dtypes.uint64: "U64",
          dtypes.uint32: "U32", dtypes.uint16: "U16", dtypes.uint8: "U8", dtypes.bool_: "BOOL", dtypes.complex64: "C64"}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
_ALIGNMENT = 8
METADATA = "__metadata__"


class Entry(NamedTuple):
    """A tensor of a file: its dtype, its shape, and the first of its bytes."""

    dtype: Any
    shape: tuple[int, ...]
    start: int


def write_safetensors(stream: Any, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Write arrays to a file.

    Args:
        stream: a file that is open for writing bytes.
        arrays: the arrays by name.
        metadata: strings by name.

    Raises:
        ValueError: the format has no such dtype.
    """
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    header: dict[str, Any] = {METADATA: dict(metadata)} if metadata else {}
    at = 0
    for name in order:
        array = arrays[name]
        dtype = dtypes.of(array.dtype)
        if dtype not in _NAMES:
            raise ValueError(f"safetensors files hold no tensors of {dtype}, the dtype of {name}")
        header[name] = {"dtype": _NAMES[dtype], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    stream.write(len(text).to_bytes(8, "little") + text)
    for name in order:
        stream.write(np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data)


def read_safetensors_header(path: str | os.PathLike[str]) -> tuple[dict[str, Entry], dict[str, str]]:
    """Read the header of a file.

    Args:
        path: the file.

    Returns:
        The tensors by name, and strings by name.

    Raises:
        ValueError: the file is no safetensors file, or a tensor has a dtype that flambeau lacks.
    """
    with Path(path).open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > os.fstat(file.fileno()).st_size:
            raise ValueError(f"{path} is no safetensors file: its header would be {length} bytes long")
        header = json.loads(file.read(length))
    metadata = header.pop(METADATA, {})
    entries = {}
    for name, each in header.items():
        if each["dtype"] not in _DTYPES:
            raise ValueError(f"flambeau has no dtype {each['dtype']}, that of {name} in {path}")
        entries[name] = Entry(_DTYPES[each["dtype"]], tuple(each["shape"]), 8 + length + each["data_offsets"][0])
    return entries, metadata


def map_safetensor(path: str | os.PathLike[str], entry: Entry) -> np.ndarray:
    """Map a tensor of a file to memory, for reading.

    Args:
        path: the file.
        entry: the tensor.
    """
    dtype = entry.dtype.numpy
    if 0 in entry.shape:
        return np.empty(entry.shape, dtype)
    count = int(np.prod(entry.shape, dtype=np.int64)) * dtype.itemsize
    mapped = np.memmap(path, np.uint8, "r", entry.start, (count,))
    return np.asarray(mapped).view(dtype).reshape(entry.shape)


__all__ = ["METADATA", "Entry", "map_safetensor", "read_safetensors_header", "write_safetensors"]
