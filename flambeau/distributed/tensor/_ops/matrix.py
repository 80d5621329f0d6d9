"""Products of matrices: what is cut along the inner dimension gives partial sums."""

from __future__ import annotations

from ...placement_types import Partial, Placement, Shard
from .strategy import OpCall, Strategy, rule

SUM = Partial("sum")


def _bias(shape: tuple[int, ...], ndim: int, dim: int) -> Placement | None:
    """The placement of a summand of a result of `ndim` dimensions that is cut along `dim`; None: replicated."""
    own = dim - (ndim - len(shape))
    return Shard(own) if own >= 0 and shape[own] != 1 else None


def _products(call: OpCall, first: int, batch: int) -> list[Strategy]:
    """Strategies of a product of the inputs `first` and `first + 1`, of `batch` leading dimensions, plus input 0."""
    ndim = 2 + batch
    choices: list[tuple[Placement | None, Placement | None, Placement]] = [
        *((Shard(d), Shard(d), Shard(d)) for d in range(batch)),
        (Shard(batch), None, Shard(batch)), (None, Shard(batch + 1), Shard(batch + 1)),
        (Shard(batch + 1), Shard(batch), SUM)]
    result = []
    for left, right, out in choices:
        inputs: dict[int, Placement] = {}
        if left is not None:
            inputs[first] = left
        if right is not None:
            inputs[first + 1] = right
        if first:
            bias = SUM if out is SUM else _bias(call.shape(0), ndim, out.dim)  # type: ignore[attr-defined]
            if bias is not None:
                inputs[0] = bias
        result.append(call.strategy(inputs, out))
    return result


@rule("mm")
def mm(call: OpCall, size: int) -> list[Strategy]:
    """(M, K) by (K, N)."""
    return _products(call, 0, 0)


@rule("bmm")
def bmm(call: OpCall, size: int) -> list[Strategy]:
    """(B, M, K) by (B, K, N)."""
    return _products(call, 0, 1)


@rule("addmm")
def addmm(call: OpCall, size: int) -> list[Strategy]:
    """beta · input + alpha · (M, K) by (K, N)."""
    return _products(call, 1, 0)


@rule("baddbmm")
def baddbmm(call: OpCall, size: int) -> list[Strategy]:
    """beta · input + alpha · (B, M, K) by (B, K, N)."""
    return _products(call, 1, 1)


@rule("mv")
def mv(call: OpCall, size: int) -> list[Strategy]:
    """(M, K) by (K,)."""
    return [call.strategy({0: Shard(0)}, Shard(0)), call.strategy({0: Shard(1), 1: Shard(0)}, SUM)]


@rule("addmv")
def addmv(call: OpCall, size: int) -> list[Strategy]:
    """beta · input + alpha · (M, K) by (K,)."""
    rows: dict[int, Placement] = {1: Shard(0)}
    if call.shape(0)[-1:] != (1,) and call.shape(0):
        rows[0] = Shard(0)
    return [call.strategy(rows, Shard(0)), call.strategy({0: SUM, 1: Shard(1), 2: Shard(0)}, SUM)]


@rule("dot", "vdot")
def dot(call: OpCall, size: int) -> list[Strategy]:
    """(K,) by (K,)."""
    return [call.strategy({0: Shard(0), 1: Shard(0)}, SUM)]


__all__ = ["addmm", "bmm", "mm"]
