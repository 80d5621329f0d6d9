"""What operators of strided nested tensors refuse: ranks, sizes and strides that do not fit, memory formats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import devices

__all__ = ["check_bmm", "check_matmul", "check_memory_format", "check_operands"]

_FORMATS = {"channels_last": "ChannelsLast", "channels_last_3d": "ChannelsLast3d"}


def check_matmul(a: Any, b: Any) -> None:
    """Check two nested factors.

    Raises:
        RuntimeError: they have fewer than three dimensions, other batches, or matrices that do not fit.
    """
    for which, x in (("1st", a), ("2nd", b)):
        if x.dim() < 3:
            raise RuntimeError("matmul: For nested tensors, only inputs with >= 3 dims are currently supported. "
                               f"{which} input has rank: {x.dim()}")
    if a.dim() != b.dim():
        raise RuntimeError("matmul: both inputs must have the same rank")
    if len(a._parts) != len(b._parts):
        raise RuntimeError("matmul: Expected size for the 1st dimension of 2nd input tensor to be: "
                           f"{len(a._parts)} but got: {len(b._parts)}.")
    batches = [[p.shape[:-2] for p in x._parts] for x in (a, b)]
    if batches[0] != batches[1]:
        shown = [f"{_rows(rows)}[ torch.LongTensor{{{len(rows)},{len(rows[0])}}} ]" for rows in batches]
        raise RuntimeError("matmul: For nested tensors, batch dimensions must have the same sizes, no broadcasting is "
                           f"currently performed. Got batch shapes for self {shown[0]} and batch shapes for mat2 "
                           f"{shown[1]}")
    inner = [p.shape[-1] for p in a._parts], [p.shape[-2] for p in b._parts]
    if inner[0] != inner[1]:
        shown = [f"{_rows([(n,) for n in sizes])}[ torch.LongTensor{{{len(sizes)}}} ]" for sizes in inner]
        raise RuntimeError("matmul: Nested tensors cannot be matrix multiplied, last dimension of self has sizes"
                           f"{shown[0]}second last dimension of mat2 has sizes{shown[1]}")


def _rows(rows: Sequence[Sequence[int]]) -> str:
    """Integers as PyTorch prints a matrix of them."""
    width = 1 + max(len(str(n)) for row in rows for n in row)
    return "".join(" ".join(f"{n:{width}d}" for n in row) + "\n" for row in rows)


def check_bmm(a: Any, b: Any, parts: tuple[Sequence[Any], Sequence[Any]]) -> None:
    """Check two factors, one of which is nested.

    Args:
        parts: their components.

    Raises:
        RuntimeError: they are no batches of matrices that fit.
    """
    for which, x in (("batch1", a), ("batch2", b)):
        if x.dim() != 3:
            raise RuntimeError(f"{which} must be a 3D tensor")
    if len(parts[0]) != len(parts[1]):
        raise RuntimeError(f"Expected size for the 1st dimension of batch2 tensor to be: {len(parts[0])} but got: "
                           f"{len(parts[1])}.")
    for i, (x, y) in enumerate(zip(*parts, strict=True)):
        if x.shape[1] != y.shape[0]:
            raise RuntimeError(f"{i}-th nested matrices in batch cannot be multiplied ({x.shape[0]}x{x.shape[1]} and "
                               f"{y.shape[0]}x{y.shape[1]})")


def check_operands(name: str, a: Any, b: Any) -> None:
    """Check the nested operands of an elementwise operator.

    Raises:
        RuntimeError: their sizes differ, or (products and quotients) how they lie in memory.
    """
    left, right = a._parts, b._parts
    if [p.shape for p in left] != [p.shape for p in right]:
        raise RuntimeError(f"{name} does not support broadcasting when given a NestedTensor")
    if name not in ("add_", "mul", "mul_", "div"):
        return
    if any(x.stride() != y.stride() for x, y in zip(left, right, strict=True)):
        raise RuntimeError(f"{name} requires strides to match when given NestedTensors")
    if any(not x.is_contiguous() and x.storage_offset() != y.storage_offset()
           and x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
           for x, y in zip(left, right, strict=True)):  # parts of the same components
        raise RuntimeError(f"{name} requires offsets to match when given NestedTensors")


def check_memory_format(memory_format: Any, message: str) -> None:
    """Check the memory format of a copy.

    Args:
        message: the error, with the name of the format.

    Raises:
        RuntimeError: it is one of images.
    """
    if memory_format not in (None, devices.contiguous_format, devices.preserve_format):
        raise RuntimeError(message.format(_FORMATS[str(memory_format).rpartition(".")[2]]))
