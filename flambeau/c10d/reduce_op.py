"""`ReduceOp`, the operation of a reduction over processes, and its effect on arrays."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes


class RedOpType(enum.IntEnum):
    """The kinds of reductions."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and int(self) == int(other)  # an object of ReduceOp equals it, not the reverse

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = enum.IntEnum.__hash__

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _kind, (int(self),)


def _kind(value: int) -> RedOpType:
    return RedOpType(value)


class _WithKinds(type):
    """Kinds count as objects of `ReduceOp`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is RedOpType or super().__instancecheck__(instance)


class ReduceOp(metaclass=_WithKinds):
    """The operation of a reduction over processes.

    Args:
        op: one of the kinds, such as `ReduceOp.SUM`.

    >>> import flambeau as torch
    >>> torch.distributed.ReduceOp(torch.distributed.ReduceOp.SUM) == torch.distributed.ReduceOp.SUM
    True
    """

    RedOpType = RedOpType
    SUM, AVG, PRODUCT, MIN, MAX = (RedOpType(i) for i in range(5))
    BAND, BOR, BXOR, PREMUL_SUM = (RedOpType(i) for i in range(5, 9))

    def __init__(self, op: Any, factor: Any = None) -> None:
        self.op, self.factor = kind_of(op), factor

    def __eq__(self, other: object) -> bool:
        return self.op == (other.op if type(other) is ReduceOp else other)

    def __hash__(self) -> int:
        return hash(self.op)

    def __int__(self) -> int:
        return int(self.op)

    def __reduce__(self) -> Any:
        return type(self), (self.op, self.factor)


def premultiplied_sum(factor: Any) -> ReduceOp:
    """A sum of values that are multiplied by a factor first, which only NCCL has."""
    return ReduceOp(RedOpType.PREMUL_SUM, factor)


def kind_of(op: Any) -> RedOpType:
    """The kind of a reduction."""
    return op.op if type(op) is ReduceOp else RedOpType(op)


#: what gloo reduces; its bool is a byte, whose sum is an `or`
_REDUCED = frozenset(each.numpy for each in (
    dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.int8, dtypes.uint8, dtypes.int32,
    dtypes.int64, dtypes.bool_))
_BITS = {RedOpType.BAND: np.bitwise_and, RedOpType.BOR: np.bitwise_or, RedOpType.BXOR: np.bitwise_xor}
_NUMBERS: dict[RedOpType, Any] = {RedOpType.SUM: np.add, RedOpType.AVG: np.add, RedOpType.PRODUCT: np.multiply,
                                  RedOpType.MIN: np.minimum, RedOpType.MAX: np.maximum}
_BOOLEANS: dict[RedOpType, Any] = {
    RedOpType.SUM: np.logical_or, RedOpType.AVG: np.logical_or, RedOpType.MAX: np.logical_or,
    RedOpType.PRODUCT: np.logical_and, RedOpType.MIN: np.logical_and, **_BITS}

Combine = Callable[[np.ndarray, np.ndarray], None]


def as_real(array: np.ndarray) -> np.ndarray:
    """A contiguous complex array as its real and imaginary parts, in the same memory; other arrays unchanged."""
    if array.dtype.kind == "c":
        return array.view(array.real.dtype)
    return array.view(np.float16) if array.dtype == dtypes.COMPLEX32 else array


def combine(op: RedOpType, array_dtype: np.dtype) -> Combine:
    """The function that reduces an array of a dtype into another, in place: `combine(...)(accumulator, incoming)`.

    Raises:
        RuntimeError: gloo has no such reduction (PyTorch's texts).
    """
    if op == RedOpType.PREMUL_SUM:
        raise RuntimeError("Cannot use ReduceOp.PREMUL_SUM with Gloo")
    if array_dtype not in _REDUCED:
        raise RuntimeError("Invalid scalar type")
    if op in _BITS and array_dtype.kind not in "iub":
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if array_dtype.kind == "b":
        function = _BOOLEANS[op]
    else:
        function = _BITS[op] if op in _BITS else _NUMBERS[op]
    if array_dtype in (dtypes.BFLOAT16, dtypes.HALF):  # computed in float32, rounded after each step as gloo does

        def narrow(accumulator: np.ndarray, incoming: np.ndarray) -> None:
            accumulator[...] = dtypes.cast(function(dtypes.widen(accumulator), dtypes.widen(incoming)), array_dtype)

        return narrow

    def in_place(accumulator: np.ndarray, incoming: np.ndarray) -> None:
        function(accumulator, incoming, out=accumulator)

    return in_place


__all__ = ["Combine", "RedOpType", "ReduceOp", "as_real", "combine", "kind_of", "premultiplied_sum"]
