"""`ProcessGroupMPI`: collectives on the CPU, over MPI."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta

from .backend import DEFAULT_TIMEOUT
from .gloo.process_group import ProcessGroupGloo
from .stores.store import Store
from .transport.mpi_transport import MPITransport, launched_by_mpi


class ProcessGroupMPI(ProcessGroupGloo):
    """Collectives on the CPU, over MPI.

    Args:
        ranks: MPI's numbers of the processes; all of MPI's if None.
        timeout: how long a collective may take.
        tag: what tells groups apart that are made at the same time.
    """

    def __init__(self, store: Store, ranks: Sequence[int] | None = None, timeout: timedelta = DEFAULT_TIMEOUT,
                 tag: int = 0) -> None:
        from .transport.mpi_transport import world

        transport = MPITransport(list(range(world().Get_size()) if ranks is None else ranks), tag)
        super().__init__(store, transport.rank, transport.size, timeout, transport)
        self._options.backend = "mpi"


def uses_mpi(size: int) -> bool:
    """Whether MPI connects the processes of a world of this size: a launcher of MPI started them all."""
    if not launched_by_mpi() or os.environ.get("TORCHELASTIC_RUN_ID"):
        return False
    try:
        from .transport.mpi_transport import world

        return bool(world().Get_size() == size)
    except RuntimeError:
        return False


__all__ = ["ProcessGroupMPI", "uses_mpi"]
