"""`Backend`, what carries out the collectives of a process group for one type of device."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from .durations import Duration

DEFAULT_TIMEOUT = timedelta(seconds=1800)


class BackendOptions:
    """Options of a backend.

    Args:
        backend: its name.
        timeout: how long a collective may take.
    """

    _timeout = Duration()

    def __init__(self, backend: str = "undefined", timeout: timedelta = DEFAULT_TIMEOUT) -> None:
        self.backend, self._timeout = backend, timeout
        self.global_ranks_in_group: list[int] = []
        self.group_name = ""


class Backend:
    """What carries out collectives; subclasses override those that they have.

    Args:
        rank: this process's number.
        size: the number of processes.
    """

    Options: type[BackendOptions] = BackendOptions

    def __init__(self, rank: int, size: int) -> None:
        self._rank, self._size = rank, size
        self._options = BackendOptions()

    def rank(self) -> int:
        """This process's number in the group."""
        return self._rank

    def size(self) -> int:
        """The number of processes of the group."""
        return self._size

    def name(self) -> str:
        """The backend's name."""
        return self._options.backend

    getBackendName = _get_backend_name = name  # noqa: N815

    @property
    def options(self) -> BackendOptions:
        """Its options."""
        return self._options

    supports_splitting = supports_coalescing = supports_time_estimate = False

    def _set_default_timeout(self, timeout: timedelta) -> None:
        self._options._timeout = timeout

    set_timeout = _set_default_timeout

    def abort(self) -> None:
        """End what is running."""
        self.shutdown()

    def shutdown(self) -> None:
        """Leave the group."""

    def _refuse(self, operation: str) -> Any:
        raise RuntimeError(f"Backend {self.name()} does not support {operation}")

    def __getattr__(self, name: str) -> Any:
        if name in OPERATIONS:
            return lambda *args, **kwargs: self._refuse(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


#: the collectives of a backend
OPERATIONS = frozenset("""
    allgather allgather_coalesced allgather_into_tensor_coalesced _allgather_base allreduce allreduce_coalesced alltoall
    alltoall_base barrier broadcast gather monitored_barrier recv recv_anysource reduce reduce_scatter
    reduce_scatter_tensor_coalesced _reduce_scatter_base scatter send
""".split())  # noqa: SIM905

__all__ = ["DEFAULT_TIMEOUT", "OPERATIONS", "Backend", "BackendOptions"]
