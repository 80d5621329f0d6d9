"""What a `Partial` placement reduces, and the pending norms that are one."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ..._tensor import functions as _functions
from ...c10d.collective_counts import functional
from ...c10d.reduce_op import ReduceOp
from ..collectives import all_reduce, reduce_scatter_tensor
from ..placement_types import Partial

functions: Any = _functions

_OPS = {"sum": ReduceOp.SUM, "avg": ReduceOp.SUM, "product": ReduceOp.PRODUCT, "min": ReduceOp.MIN,
        "max": ReduceOp.MAX}


class _NormPartial(Partial):
    """Each process has the p-norm of its part: the norm of all is (sum of p-th powers) ** (1 / p).

    Args:
        norm_type: p; may be inf, -inf or 0.
    """

    def __init__(self, norm_type: float = 2) -> None:
        super().__init__("max" if norm_type == float("inf") else "min" if norm_type == float("-inf") else "sum")
        self.norm_type = norm_type

    def raised(self) -> bool:
        """Whether powers are added."""
        return self.norm_type not in (float("inf"), float("-inf"), 0, 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NormPartial) and self.norm_type == other.norm_type

    def __hash__(self) -> int:
        return hash(("norm", self.norm_type))

    def __repr__(self) -> str:
        return f"_NormPartial(reduce_op={self.reduce_op}, norm_type={self.norm_type})"

    def __str__(self) -> str:
        return f"_NormP({self.reduce_op}, {self.norm_type})"


def _before(placement: Partial, x: Any) -> Any:
    if isinstance(placement, _NormPartial) and placement.raised():
        return x.pow(placement.norm_type)
    return x


def _after(placement: Partial, x: Any, size: int) -> Any:
    if isinstance(placement, _NormPartial):
        return x.pow(1 / placement.norm_type) if placement.raised() else x
    return x.div_(size) if placement.reduce_op == "avg" else x


def _op_of(placement: Partial) -> Any:
    if placement.reduce_op not in _OPS:
        raise ValueError(f"Unsupported reduction operation: {placement.reduce_op}")
    return _OPS[placement.reduce_op]


def reduced(placement: Partial, local: Any, group: Any) -> Any:
    """The reduction over all processes of a group, as a new tensor."""
    out = _before(placement, local)
    out = out.clone() if out is local else out
    out = out.contiguous()
    if out.dtype.name == "bool":
        whole = out.to(dtype=dtypes.uint8)
        with functional("all_reduce"):
            all_reduce(whole, _op_of(placement), group)
        return whole.bool()
    with functional("all_reduce"):
        all_reduce(out, _op_of(placement), group)
    return _after(placement, out, group.size())


def reduced_part(placement: Partial, padded: Any, group: Any) -> Any:
    """A process's part of the reduction of a tensor whose first dimension has equal parts for all processes."""
    own = _before(placement, padded).contiguous()
    out = own.new_empty((own.shape[0] // group.size(), *own.shape[1:]))
    with functional("reduce_scatter_tensor"):
        reduce_scatter_tensor(out, own, _op_of(placement), group)
    return _after(placement, out, group.size())


def summand(placement: Partial, whole: Any, rank: int, size: int) -> Any:
    """What a process contributes so that the reduction is a tensor that all have."""
    if placement.reduce_op in ("avg", "min", "max"):
        return whole
    if isinstance(placement, _NormPartial):
        return whole if rank == 0 else functions.zeros_like(whole)
    if placement.reduce_op == "sum":
        return whole if rank == 0 else functions.zeros_like(whole)
    return whole if rank == 0 else functions.ones_like(whole)


__all__ = ["_NormPartial", "reduced", "reduced_part", "summand"]
