"""Messages over MPI, by mpi4py, between processes that `mpirun` or a cluster's launcher started."""

from __future__ import annotations

import os
import time
from typing import Any

from .transport import Buffer, Deadline, Receipt, Transport, too_late, unequal

#: variables that launchers of MPI processes set: Open MPI, PMIx, MPICH and its relatives
_LAUNCHED = ("OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_SIZE", "MPI_LOCALNRANKS")
_SPINS = 200  # looks at a request before the thread sleeps between them


def launched_by_mpi() -> bool:
    """Whether an MPI launcher started this process, or `mpi4py.MPI` is imported with several processes."""
    return any(name in os.environ for name in _LAUNCHED)


def world() -> Any:
    """MPI's communicator of all processes.

    Raises:
        RuntimeError: mpi4py or MPI is not installed, or MPI was initialised without support of threads.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise RuntimeError("Distributed package doesn't have MPI built in. MPI is only included if mpi4py and an MPI "
                           f"are installed: pip install 'flambeau[distributed]' ({error})") from None
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise RuntimeError("MPI was initialised without MPI_THREAD_MULTIPLE, which process groups need")
    return MPI.COMM_WORLD


class _Request(Receipt):
    """A receive that MPI carries out whenever it is asked."""

    def __init__(self, transport: MPITransport, request: Any, peer: int | None, buffer: Buffer) -> None:
        self.transport, self.request, self.peer, self.buffer = transport, request, peer, buffer
        self.size = len(buffer)
        self.sender: int | None = None

    def arrived(self) -> bool:
        if self.sender is None:
            status = self.transport.status()
            if self.request.Test(status):
                self.sender = status.Get_source()
                if status.Get_count() != self.size:
                    raise RuntimeError(unequal(status.Get_count(), self.sender, self.size))
        return self.sender is not None

    def wait(self, deadline: Deadline) -> int:
        looks = 0
        while not self.arrived():
            looks += 1
            if looks > _SPINS:
                if deadline.left() <= 0:
                    self.request.Cancel()
                    raise RuntimeError(too_late(deadline, self.peer))
                time.sleep(0 if looks < 20 * _SPINS else 5e-5)
        assert self.sender is not None
        return self.sender


class MPITransport(Transport):
    """Messages over MPI between some of the processes of its world.

    Args:
        ranks: MPI's numbers of the processes, in the order of theirs here; all of them make this object.
        tag: what tells groups apart that are made at the same time.
    """

    def __init__(self, ranks: list[int], tag: int) -> None:
        communicator = world()
        super().__init__(ranks.index(communicator.Get_rank()), len(ranks))
        group = communicator.Get_group()
        self._communicator = communicator.Create_group(group.Incl(ranks), tag % 32768)
        from mpi4py import MPI

        self._mpi = MPI
        self._communicator.Set_errhandler(MPI.ERRORS_RETURN)
        self._tag_limit = self._communicator.Get_attr(MPI.TAG_UB) or 32767

    def status(self) -> Any:
        """Return a new status of a request."""
        return self._mpi.Status()

    def _tag(self, tag: int) -> int:
        # tags of point-to-point messages and of collectives (whose highest bit is set) take turns
        return int((2 * (tag & 0x7FFFFFFFFFFFFFFF) + (tag >> 63)) % (self._tag_limit - self._tag_limit % 2))

    def send(self, peer: int, tag: int, buffer: Buffer, deadline: Deadline) -> None:
        request = self._communicator.Isend([buffer, self._mpi.BYTE], dest=peer, tag=self._tag(tag))
        looks = 0
        while not request.Test():
            looks += 1
            if looks > _SPINS:
                if deadline.left() <= 0:
                    raise RuntimeError(f"[gloo] Timed out waiting {int(deadline.seconds * 1000)}ms for send operation "
                                       f"to complete: rank {peer} does not receive")
                time.sleep(0 if looks < 20 * _SPINS else 5e-5)
        self._count(len(buffer))

    def expect(self, peer: int | None, tag: int, buffer: Buffer) -> Receipt:
        source = self._mpi.ANY_SOURCE if peer is None else peer
        request = self._communicator.Irecv([buffer, self._mpi.BYTE], source=source, tag=self._tag(tag))
        return _Request(self, request, peer, buffer)

    def close(self) -> None:
        # MPI's own end frees the communicator: doing it here would wait for the other processes
        self._communicator = self._mpi.COMM_NULL


__all__ = ["MPITransport", "launched_by_mpi", "world"]
