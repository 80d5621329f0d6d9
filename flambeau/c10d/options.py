"""Options of collectives, as objects."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from .durations import Duration
from .reduce_op import ReduceOp

UNSET_TIMEOUT = timedelta(milliseconds=-1)  # the process group's timeout


class _Options:
    """Options of a collective.

    Attributes:
        timeout: how long it may take; negative: as long as the process group allows.
        asyncOp: whether it runs beside the caller.
    """

    timeout = Duration()

    def __init__(self) -> None:
        self.timeout = UNSET_TIMEOUT
        self.asyncOp = True


class _Reduction:
    """An attribute that is set as `ReduceOp` or as a kind, and read as `ReduceOp`."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else instance.__dict__["reduceOp"]

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__["reduceOp"] = value if type(value) is ReduceOp else ReduceOp(value)


class _Reducing(_Options):
    reduceOp = _Reduction()  # noqa: N815

    def __init__(self) -> None:
        super().__init__()
        self.reduceOp = ReduceOp.SUM
        self.sparseIndices: Any = None


class _Rooted(_Options):
    def __init__(self) -> None:
        super().__init__()
        self.rootRank, self.rootTensor = 0, 0


class AllreduceOptions(_Reducing):
    """Options of `allreduce`."""


class AllreduceCoalescedOptions(AllreduceOptions):
    """Options of `allreduce_coalesced`."""


class ReduceScatterOptions(_Reducing):
    """Options of `reduce_scatter`."""


class ReduceOptions(_Reducing):
    """Options of `reduce`."""

    def __init__(self) -> None:
        super().__init__()
        self.rootRank, self.rootTensor = 0, 0


class BroadcastOptions(_Rooted):
    """Options of `broadcast`."""


class GatherOptions(_Rooted):
    """Options of `gather`."""


class ScatterOptions(_Rooted):
    """Options of `scatter`."""


class AllgatherOptions(_Options):
    """Options of `allgather`."""


class AllToAllOptions(_Options):
    """Options of `alltoall`."""


class BarrierOptions(_Options):
    """Options of `barrier`."""

    def __init__(self) -> None:
        super().__init__()
        self.device_ids: Any = None
        self.device: Any = None


def with_options(opts: Any, cls: type, timeout: Any = None) -> Any:
    """The options of a call: its own, or those of a class, with a timeout if it has one."""
    opts = cls() if opts is None else opts
    if timeout is not None:
        opts.timeout = timeout
    return opts


def arguments(tensors: Any, opts: Any, cls: type, *, op: Any = None, root: int | None = None,
              timeout: Any = None) -> tuple[list[Any], Any]:
    """Tensors and options of a call, whose options may be single arguments."""
    if opts is not None and not hasattr(opts, "asyncOp"):  # `allreduce(tensor, ReduceOp.SUM)`, `broadcast(tensor, 0)`
        reduces = "reduce" in cls.__name__.lower()
        op, root, opts = opts if reduces else op, root if reduces else opts, None
    opts = with_options(opts, cls, timeout)
    if op is not None:
        opts.reduceOp = op
    if root is not None:
        opts.rootRank = root
    return list(tensors) if isinstance(tensors, (list, tuple)) else [tensors], opts


__all__ = ["UNSET_TIMEOUT", "AllToAllOptions", "AllgatherOptions", "AllreduceCoalescedOptions", "AllreduceOptions",
           "BarrierOptions", "BroadcastOptions", "GatherOptions", "ReduceOptions", "ReduceScatterOptions",
           "ScatterOptions"]
