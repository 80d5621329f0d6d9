"""`torch.distributed.checkpoint.utils`: steps of several processes, whose errors all see; look-ups."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from ... import distributed as dist
from ..._tensor import Tensor
from ...c10d.process_group import ProcessGroup
from ...shapes import Size
from .api import CheckpointException, _is_wrapped_exception, _wrap_exception
from .metadata import STATE_DICT_TYPE, MetadataIndex
from .states.shards import chunk_of, is_sharded

__all__ = ["find_state_dict_object", "find_tensor_shard"]

T = TypeVar("T")
R = TypeVar("R")


def _attempt(function: Callable[[], Any]) -> Any:
    """What a function returns, or the error that it raises as a value."""
    try:
        return function()
    except BaseException as error:
        return _wrap_exception(error)


def _get_failure_dict(results: list[Any]) -> dict[int, Any]:
    return {rank: each for rank, each in enumerate(results) if _is_wrapped_exception(each)}


class _DistWrapper:
    """Steps in which all processes of a group take part, or this process alone.

    If a step fails at any rank, all ranks raise CheckpointException.

    Args:
        group: the processes; all if None.
        use_dist: whether there are others than this process.
        coordinator_rank: the rank in the group that gathers.
    """

    def __init__(self, group: ProcessGroup | None, use_dist: bool, coordinator_rank: int) -> None:
        self.group, self.use_dist, self.coordinator_rank = group, use_dist, coordinator_rank
        self.rank, self.is_coordinator, self.global_coordinator_rank = 0, True, 0
        if use_dist:
            self.rank = dist.get_rank(group)
            self.is_coordinator = self.rank == coordinator_rank
            self.global_coordinator_rank = (coordinator_rank if group is None
                                            else dist.get_global_rank(group, coordinator_rank))

    def get_rank(self) -> int:
        """This process's number in the group."""
        return self.rank

    def get_world_size(self) -> int:
        """The number of processes."""
        return dist.get_world_size(self.group) if self.use_dist else 1

    def broadcast_object(self, object: T | None) -> T:
        """Give all ranks the coordinator's object."""
        objects: list[Any] = [object]
        if self.use_dist:
            dist.broadcast_object_list(objects, src=self.global_coordinator_rank, group=self.group)
        return objects[0]

    def gather_object(self, object: T) -> list[T] | None:
        """Give the coordinator the objects of all ranks; None at the others."""
        if not self.use_dist:
            return [object]
        gathered: Any = [None] * self.get_world_size() if self.is_coordinator else None
        dist.gather_object(object, gathered, dst=self.global_coordinator_rank, group=self.group)
        return gathered

    def all_gather_object(self, object: T) -> list[T]:
        """Give all ranks the objects of all."""
        if not self.use_dist:
            return [object]
        gathered: list[Any] = [None] * self.get_world_size()
        dist.all_gather_object(gathered, object, group=self.group)
        return gathered

    def scatter_object(self, object_list: list[T] | None) -> T:
        """Give each rank its element of the coordinator's list."""
        if not self.use_dist:
            assert object_list is not None
            return object_list[0]
        received: list[Any] = [None]
        dist.scatter_object_list(received, object_list if self.is_coordinator else None,
                                 src=self.global_coordinator_rank, group=self.group)
        return received[0]

    def _reduced(self, step: str, map_fun: Callable[[], Any], reduce_fun: Callable[[list[Any]], Any]) -> Any:
        """At the coordinator, the reduced values of all ranks, or the exception that all shall raise."""
        gathered = self.gather_object(_attempt(map_fun))
        if gathered is None:
            return None
        failures = _get_failure_dict(gathered)
        if not failures:
            reduced = _attempt(lambda: reduce_fun(gathered))
            if not _is_wrapped_exception(reduced):
                return reduced
            failures = {self.rank: reduced}
        return CheckpointException(step, failures)

    @staticmethod
    def _checked(result: Any) -> Any:
        if isinstance(result, CheckpointException):
            raise result
        return result

    def reduce_scatter(self, step: str, map_fun: Callable[[], T], reduce_fun: Callable[[list[T]], list[R]]) -> R:
        """Compute a value at each rank, reduce them at the coordinator to a list, give each rank its element."""
        reduced = self._reduced(step, map_fun, reduce_fun)
        if isinstance(reduced, CheckpointException):
            reduced = [reduced] * self.get_world_size()
        return self._checked(self.scatter_object(reduced))

    def all_reduce(self, step: str, map_fun: Callable[[], T], reduce_fun: Callable[[list[T]], R]) -> R:
        """Compute a value at each rank, reduce them at the coordinator, give all ranks the result."""
        return self._checked(self.broadcast_object(self._reduced(step, map_fun, reduce_fun)))

    def all_gather(self, step: str, map_fun: Callable[[], T]) -> list[T]:
        """Compute a value at each rank, give all ranks all of them."""
        gathered = self.all_gather_object(_attempt(map_fun))
        failures = _get_failure_dict(gathered)
        if failures:
            raise CheckpointException(step, failures)
        return gathered

    def broadcast(self, step: str, map_fun: Callable[[], T]) -> T:
        """Compute a value at the coordinator, give it to all ranks."""
        result: Any = _attempt(map_fun) if self.is_coordinator else None
        if _is_wrapped_exception(result):
            result = CheckpointException(step, {self.rank: result})
        return self._checked(self.broadcast_object(result))

    def barrier(self) -> None:
        """Wait for all ranks."""
        if self.use_dist:
            dist.barrier(group=self.group)


def _all_gather_keys(local_dict: dict[str, Any], group: ProcessGroup | None = None) -> set[str]:
    """The keys that any rank has."""
    gathered: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(gathered, list(local_dict), group=group)
    return set().union(*gathered)


def _assert_same_keys(state_dict: dict[str, Any], process_group: ProcessGroup | None = None) -> None:
    """Check that all ranks have the same keys.

    Raises:
        AssertionError: this rank lacks keys of others (PyTorch's text).
    """
    if dist.get_world_size(process_group) == 1:
        return
    missing = _all_gather_keys(state_dict, process_group) - set(state_dict)
    if missing:
        raise AssertionError(f"Key(s) present in other ranks but not this one, difference: {missing}")


def find_tensor_shard(tensor: Tensor, index: MetadataIndex) -> Tensor:
    """The part of a tensor that this process has.

    Args:
        tensor: a tensor, distributed or not.
        index: where the part begins.

    Raises:
        ValueError: this process has no such part (PyTorch's text).
    """
    if hasattr(tensor, "__get_tensor_shard__"):
        return tensor.__get_tensor_shard__(index)
    if is_sharded(tensor):
        chunk = chunk_of(tensor)
        if chunk is not None and (index.offset is None or index.offset == chunk.offsets):
            return tensor.to_local()
    elif index.offset is None or index.offset == Size([0] * tensor.ndim):
        return tensor
    raise ValueError(f"FQN: '{index.fqn}' is not a ShardedTensor, can't find by offset: '{index.offset}'")


def find_state_dict_object(state_dict: STATE_DICT_TYPE, index: MetadataIndex) -> Any:
    """The object, or the part of a tensor, with a key.

    Args:
        state_dict: a flat state dict.
        index: the key.

    Raises:
        ValueError: there is none (PyTorch's texts).
    """
    if index.fqn not in state_dict:
        raise ValueError(f"Could not find FQN: '{index.fqn}'")
    found = state_dict[index.fqn]
    if isinstance(found, Tensor):
        return find_tensor_shard(found, index)
    if index.offset is not None:
        raise ValueError(f"FQN: '{index.fqn}' is not a ShardedTensor, can't find by offset: '{index.offset}'")
    return found


class _ReaderView(io.IOBase):
    """A part of a file, as a file."""

    def __init__(self, base_stream: Any, offset: int, len: int) -> None:
        super().__init__()
        self.base_stream, self.offset, self.len = base_stream, offset, len
        self.seek(0)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to a place."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.tell() if whence == os.SEEK_CUR else 0, os.SEEK_END: self.len}
        return self.base_stream.seek(self.offset + start[whence] + offset) - self.offset

    def tell(self) -> int:
        """The place."""
        return self.base_stream.tell() - self.offset

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; the number of bytes."""
        left = max(0, self.len - self.tell())
        return self.base_stream.readinto(memoryview(buffer)[:left])

    def read(self, size: int = -1) -> bytes:
        """Read bytes, all that are left if `size` is negative."""
        left = max(0, self.len - self.tell())
        return self.base_stream.read(left if size is None or size < 0 else min(size, left))


def _create_file_view(file: Any, offset: int, length: int) -> _ReaderView:
    """A part of a file, as a file."""
    return _ReaderView(file, offset, length)


def _element_wise_add(a: Any, b: Any) -> list[int]:
    return [x + y for x, y in zip(a, b, strict=False)]


def _element_wise_sub(a: Any, b: Any) -> list[int]:
    return [x - y for x, y in zip(a, b, strict=False)]


def _api_bc_check(func: Callable[..., R]) -> Callable[..., R]:
    """Take a storage as the second positional argument, with a warning, as older versions of PyTorch do."""
    import inspect

    keyword = next((each for each in inspect.signature(func).parameters if each.startswith("storage_")), "")

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> R:
        if len(args) == 2:
            warnings.warn(f"The argument order of {func.__name__} has been changed. Please check the document to avoid "
                          "future breakages.", stacklevel=2)
            return func(args[0], **{keyword: args[1]}, **kwargs)
        return func(*args, **kwargs)

    return call
