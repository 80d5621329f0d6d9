"""Results of functions that one process or all compute for all, with the errors of those that fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..c10d.process_group import ProcessGroup
from .groups.queries import get_world_size
from .object_collectives import all_gather_object, broadcast_object_list

__all__ = ["all_gather", "all_gather_object_enforce_type", "broadcast"]


@dataclass
class SyncPayload:
    """What one process sends to the others.

    Attributes:
        stage_name: the name of the step.
        success: whether it succeeded.
        payload: its result.
        exception: what it raised.
    """

    stage_name: str | None
    success: bool
    payload: Any
    exception: Exception | None = None


def _computed(data_or_fn: Any, success: bool, stage_name: str | None) -> SyncPayload:
    try:
        return SyncPayload(stage_name, success, data_or_fn() if callable(data_or_fn) else data_or_fn)
    except Exception as error:
        return SyncPayload(stage_name, False, None, error)


def broadcast(data_or_fn: Any, *, success: bool = True, stage_name: str | None = None, rank: int = 0,
              pg: ProcessGroup | None = None) -> Any:
    """Return in all processes what one process has or computes.

    Args:
        data_or_fn: an object, or a function that makes it and is called in that process.
        success: False raises in all processes.
        stage_name: the name of the step, for errors.
        rank: the process.
        pg: the processes; this one alone if None.

    Raises:
        RuntimeError: the function has raised, or `success` is False (PyTorch's texts).

    >>> from flambeau.distributed.collective_utils import broadcast
    >>> broadcast(lambda: 2 + 3)
    5
    """
    if not success and data_or_fn is not None:
        raise AssertionError("Data or Function is expected to be None if not successful")
    own = (0 if pg is None else pg.rank()) == rank
    sent = _computed(data_or_fn if own else None, success, stage_name)
    if pg is not None:
        received = [sent]
        broadcast_object_list(received, src=rank, group=pg)
        sent = received[0]
    if not sent.success:
        stage = "" if stage_name is None else f": stage {sent.stage_name}"
        cause = "" if sent.exception is None else f": exception {sent.exception}"
        raise RuntimeError(f"Rank {rank} failed{stage}{cause}") from sent.exception
    return sent.payload


def all_gather(data_or_fn: Any, stage_name: str | None = None, pg: ProcessGroup | None = None) -> list[Any]:
    """Return in all processes what each has or computes, by rank.

    Args:
        data_or_fn: an object, or a function that makes it.
        stage_name: the name of the step, which must be the same in all processes.
        pg: the processes; this one alone if None.

    Raises:
        RuntimeError: a function has raised (PyTorch's texts).

    >>> from flambeau.distributed.collective_utils import all_gather
    >>> all_gather(7)
    [7]
    """
    own = _computed(data_or_fn, True, stage_name)
    if pg is None:
        if not own.success:
            raise RuntimeError(f"all_gather failed with exception {own.exception}") from own.exception
        return [own.payload]
    found: list[Any] = [None] * get_world_size(pg)
    all_gather_object_enforce_type(pg, found, own)
    text = "".join(f"Unexpected stage name received from rank {rank}: {each.stage_name} "
                   for rank, each in enumerate(found) if each.stage_name != found[0].stage_name)
    failed = [(rank, each.exception) for rank, each in enumerate(found) if not each.success]
    if failed:
        raise RuntimeError(text, failed) from failed[0][1]
    return [each.payload for each in found if each.stage_name == found[0].stage_name]


def all_gather_object_enforce_type(pg: ProcessGroup, object_list: list[Any], obj: Any,
                                   type_checker: Callable[[Any, Any], bool] = lambda x, y: type(x) is type(y)) -> None:
    """Gather one object of each process, which all have the type of the first.

    Args:
        pg: the processes.
        object_list: the list to write to.
        obj: this process's object.
        type_checker: whether two objects have the same type.

    Raises:
        TypeError: an object has another type (PyTorch's text).
    """
    all_gather_object(object_list, obj, group=pg)
    for index, each in enumerate(object_list):
        if not type_checker(object_list[0], each):
            raise TypeError(f"Object type at index {index} is {type(each)}, while first object type is "
                            f"{type(object_list[0])}")
