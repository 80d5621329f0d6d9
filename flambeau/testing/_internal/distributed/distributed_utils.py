"""Tests that ask only how many processes there are: a process group that has no collectives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial, wraps
from typing import Any

from .... import distributed as dist
from ....distributed import distributed_c10d as c10d


class MockProcessGroup(dist.ProcessGroup):
    """A process group without collectives."""

    def getBackendName(self) -> str:
        """The name of its backend."""
        return "mock_process_group"


def create_mock_pg(prefix_store: Any, rank: int, world_size: int, timeout: Any) -> MockProcessGroup:
    """A `MockProcessGroup`, for `Backend.register_backend`."""
    return MockProcessGroup(rank, world_size)


dist.Backend.register_backend("mock_process_group", create_mock_pg)


def mock_init_dist(rank: int, world_size: int) -> None:
    """Start a process group whose other processes do not exist.

    Raises:
        AssertionError: there is a process group.
    """
    if dist.is_initialized():
        raise AssertionError("Expected dist to not be initialized")
    store = dist.HashStore()
    store.add(f"{c10d.STORE_BASED_BARRIER_PREFIX}:0", world_size - 1)  # as if the others had come to the barrier
    dist.init_process_group("mock_process_group", rank=rank, world_size=world_size, store=store, group_name="fake",
                            timeout=timedelta(seconds=1))


@contextmanager
def with_dist(rank: int = 0, world_size: int = 2) -> Iterator[None]:
    """A `with` block inside a process group without collectives.

    >>> import flambeau.distributed as dist
    >>> with with_dist(rank=1, world_size=3):
    ...     dist.get_rank(), dist.get_world_size()
    (1, 3)
    """
    mock_init_dist(rank=rank, world_size=world_size)
    try:
        yield
    finally:
        dist.destroy_process_group()


def with_fake_comms(func: Callable[..., Any] | None = None, rank: int = 0, world_size: int = 2) -> Any:
    """A decorator of a test's method: it runs inside `with_dist`.

    >>> import flambeau.distributed as dist
    >>> @with_fake_comms(world_size=5)
    ... def test(self):
    ...     print(dist.get_world_size())
    >>> test(None)
    5
    """
    if func is None:
        return partial(with_fake_comms, rank=rank, world_size=world_size)

    @wraps(func)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
        with with_dist(rank, world_size):
            func(self, *args, **kwargs)

    return wrapper


__all__ = ["MockProcessGroup", "create_mock_pg", "mock_init_dist", "with_dist", "with_fake_comms"]
