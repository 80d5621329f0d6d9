"""`ProcessGroup`: processes that run collectives together, with a backend for each type of device."""

from __future__ import annotations

import enum
from datetime import timedelta
from typing import Any

from .backend import OPERATIONS, Backend
from .stores.store import Store


class BackendType(enum.IntEnum):
    """The kinds of backends."""

    UNDEFINED = 0
    GLOO = 1
    NCCL = 2
    UCC = 3
    MPI = 4
    XCCL = 5
    CUSTOM = 6

    def __repr__(self) -> str:
        return f"<BackendType.{self.name}: {self.value}>"


class ProcessGroup:
    """Processes that run collectives together.

    Programs may implement it: a subclass overrides the collectives that it has.

    Args:
        store: a store of these processes alone; or the rank, if only two arguments are given.
        rank: this process's number in the group.
        size: the number of its processes.

    >>> import flambeau as torch
    >>> torch.distributed.ProcessGroup(0, 2).size()
    2
    """

    BackendType = BackendType
    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, CUSTOM = BackendType

    def __init__(self, store: Store | int, rank: int, size: int | None = None) -> None:
        if isinstance(store, int):
            self._rank, self._size, self._store = store, rank, None
        else:
            assert size is not None
            self._rank, self._size, self._store = rank, size, store
        self._backends: dict[str, Backend] = {}
        self._default: Any = BackendType.UNDEFINED
        self._group_name, self._description = "", "undefined"

    def rank(self) -> int:
        """This process's number in the group."""
        return self._rank

    def size(self) -> int:
        """The number of processes of the group."""
        return self._size

    def name(self) -> str:
        """The name of the default backend; a program's group may have `getBackendName`."""
        own = getattr(type(self), "getBackendName", None)
        return self._first().name() if own is None else str(own(self))

    _get_backend_name = name

    @property
    def group_name(self) -> str:
        """The group's name, the same in all processes."""
        return self._group_name

    @property
    def group_desc(self) -> str:
        """The group's description."""
        return self._description

    bound_device_id = None

    @property
    def supports_splitting(self) -> bool:
        """Whether parts of the group are made without new connections: no."""
        return False

    def _set_group_name(self, name: str) -> None:
        self._group_name = name

    def _set_group_desc(self, description: str) -> None:
        self._description = description

    def _set_default_backend(self, kind: Any) -> None:
        self._default = kind

    def _register_backend(self, device: Any, kind: Any, backend: Backend | None = None) -> None:
        if backend is not None:
            self._backends[_type_of(device)] = backend

    @property
    def _device_types(self) -> list[Any]:
        from ..devices import device

        return [device(each) for each in self._backends]

    def _get_backend(self, device: Any) -> Backend:
        found = self._backends.get(_type_of(device))
        if found is None:
            raise RuntimeError(f"No backend type associated with device type {_type_of(device)}")
        return found

    def _first(self) -> Backend:
        if not self._backends:
            raise RuntimeError("the process group has no backend")
        return self._backends.get("cpu") or next(iter(self._backends.values()))

    def get_group_store(self) -> Store | None:
        """The store of these processes."""
        return self._store

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long collectives may take."""
        for backend in self._backends.values():
            backend._set_default_timeout(timeout)

    def _set_sequence_number_for_group(self) -> None:
        for backend in self._backends.values():
            getattr(backend, "_set_sequence_number_for_group", lambda: None)()

    def _get_sequence_number_for_group(self) -> int:
        return int(self._first()._get_sequence_number_for_group())

    def _wait_for_pending_works(self) -> None:
        self._first()._wait_for_pending_works()

    def _has_hooks(self) -> bool:
        return False

    def _start_coalescing(self, device: Any) -> None:
        raise RuntimeError(f"Backend {self._get_backend(device).name()} does not implement startCoalescing")

    def shutdown(self) -> None:
        """Leave the group."""
        for backend in set(self._backends.values()):
            backend.shutdown()

    abort = shutdown

    def __getattr__(self, name: str) -> Any:
        if name in OPERATIONS:
            return getattr(self._first(), name)
        if name in _NEWER_NAMES:
            return getattr(self, _NEWER_NAMES[name])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


#: names of collectives that groups have, and those that backends have
_NEWER_NAMES = {"reduce_scatter_tensor": "_reduce_scatter_base", "reduce_scatter_single": "_reduce_scatter_base",
                "all_gather_into_tensor": "_allgather_base", "all_gather_single": "_allgather_base",
                "all_to_all_single": "alltoall_base",
                "all_gather_single_coalesced": "allgather_into_tensor_coalesced",
                "reduce_scatter_single_coalesced": "reduce_scatter_tensor_coalesced"}


def _type_of(device: Any) -> str:
    return str(getattr(device, "type", device))


__all__ = ["BackendType", "ProcessGroup"]
