"""The process groups of this process: the default one and those that were made of it."""

from __future__ import annotations

from typing import Any

from .process_group import ProcessGroup
from .stores.store import Store

NOT_INITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."


class _GroupMeta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The default process group; None if there is none."""
        return world.default

    @WORLD.setter
    def WORLD(cls, pg: ProcessGroup | None) -> None:
        world.default = pg


class group(metaclass=_GroupMeta):
    """The default process group, `WORLD`.

    >>> import flambeau as torch
    >>> torch.distributed.group.WORLD is None
    True
    """


class GroupMember(metaclass=_GroupMeta):
    """The default process group, and the mark of a process outside of a group."""

    NON_GROUP_MEMBER = -100


class World:
    """The process groups of this process.

    Attributes:
        default: the default process group.
        ranks: group -> the global rank of each member and its rank in the group.
        backends, stores, names, tags, configs: group -> what it was made of.
        count: how many names were given.
    """

    def __init__(self) -> None:
        self.default: ProcessGroup | None = None
        self.default_init_method: str | None = None
        self.count = 0
        self.clear()

    def clear(self) -> None:
        """Forget all groups."""
        self.default = None
        self.ranks: dict[Any, dict[int, int]] = {}
        self.backends: dict[Any, str] = {}
        self.stores: dict[Any, Store] = {}
        self.names: dict[Any, str] = {}
        self.tags: dict[Any, str] = {}
        self.configs: dict[Any, str] = {}
        self.coalescing: dict[Any, list[Any]] = {}
        self.count = 0

    def forget(self, pg: Any) -> None:
        """Forget one group."""
        for entries in (self.ranks, self.backends, self.stores, self.names, self.tags, self.configs):
            entries.pop(pg, None)

    # PyTorch's names
    @property
    def default_pg(self) -> ProcessGroup | None:
        """The default process group."""
        return self.default

    @default_pg.setter
    def default_pg(self, pg: ProcessGroup | None) -> None:
        self.default = pg

    pg_map = property(lambda self: {pg: (self.backends[pg], self.stores.get(pg)) for pg in self.backends})
    pg_names = property(lambda self: self.names)
    pg_group_ranks = property(lambda self: self.ranks)
    pg_backend_config = property(lambda self: self.configs)
    group_count = property(lambda self: self.count)


world = World()


def default_group() -> ProcessGroup:
    """Return the default process group.

    Raises:
        ValueError: there is none (PyTorch's text).
    """
    if world.default is None:
        raise ValueError(NOT_INITIALIZED)
    return world.default


__all__ = ["NOT_INITIALIZED", "GroupMember", "World", "default_group", "group", "world"]
