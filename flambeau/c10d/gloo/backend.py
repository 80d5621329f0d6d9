"""What `ProcessGroupGloo` runs its collectives on: connections, a queue, barriers, messages of programs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from .. import algorithms
from ..backend import DEFAULT_TIMEOUT, Backend, BackendOptions
from ..faults import cause
from ..memory import Target, read
from ..options import BarrierOptions, with_options
from ..profiling import in_profile, recorded
from ..stores.store import Store
from ..transport.shared_memory_transport import share_memory
from ..transport.socket_transport import SocketTransport
from ..transport.transport import Deadline, Transport
from ..work import ReceiveWork, Work, WorkQueue

_COLLECTIVE = 1 << 63  # the bit of tags that tells collectives from messages of programs


class _GlooOptions(BackendOptions):
    """Options of `ProcessGroupGloo`."""

    def __init__(self, timeout: timedelta = DEFAULT_TIMEOUT) -> None:
        super().__init__("gloo", timeout)
        self._devices: list[Any] = []
        self._threads = 2


class GlooBackend(Backend):
    """Connected processes that run collectives one after another; barriers and messages of programs.

    Args:
        store, rank, size, timeout, transport: as for `ProcessGroupGloo`.
    """

    _Options = _GlooOptions
    Options: type[BackendOptions] = _GlooOptions

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta | BackendOptions = DEFAULT_TIMEOUT,
                 transport: Transport | None = None) -> None:
        super().__init__(rank, size)
        self._options = timeout if isinstance(timeout, BackendOptions) else _GlooOptions(timeout)
        self._store = store
        if transport is None:
            transport, self._collectives = _connect(store.clone() if size > 1 else store, rank, size,
                                                    self._options._timeout)
        else:
            self._collectives = transport
        self._transport: Transport = transport
        self._works = WorkQueue()
        self._sequence = self._messages = 0  # collectives that ran, and messages

    @staticmethod
    def create_default_device(lazy_init: bool = False) -> Any:
        """What connects processes by default."""
        return None

    @staticmethod
    def create_device(hostname: str = "", interface: str = "", lazy_init: bool = False) -> Any:
        """What connects processes on one interface, which GLOO_SOCKET_IFNAME sets here."""
        return None

    # ----- running ---------------------------------------------------------------------------

    def _set_sequence_number_for_group(self) -> None:
        self._sequence = self._messages = 0

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence + self._messages

    @property
    def bytes_sent(self) -> int:
        """The payload bytes that this process sent to others of the group."""
        return sum(each.bytes_sent for each in {self._transport, self._collectives})

    def _deadline(self, timeout: timedelta | None) -> Deadline:
        chosen = self._options._timeout if timeout is None or timeout < timedelta(0) else timeout
        return Deadline(chosen.total_seconds())

    def _start(self, opts: Any, run: Callable[[Transport, int, Deadline], None], results: list[Any]) -> Work:
        """Run a collective in its turn, beside the caller if its options say so."""
        self._sequence += 1
        net, tag, timeout = self._collectives, _COLLECTIVE | self._sequence, opts.timeout

        number = self._sequence

        def task() -> list[Any]:
            try:
                run(net, tag, self._deadline(timeout))
            except RuntimeError as error:
                if net.direct:  # all wait for all: the error names who is missing
                    raise
                known = cause(error, self._store, number, self._rank, self._size)
                if known is error:
                    raise
                raise known from error
            return results

        task = in_profile(task)
        return self._works.start(task) if opts.asyncOp else self._works.run(task)

    def abort(self) -> None:
        self._works.close()
        self._collectives.close()
        self._transport.close()

    def _wait_for_pending_works(self) -> None:
        self._works.drain()

    def shutdown(self) -> None:
        self._works.drain()
        self._works.close()
        self._collectives.close()
        self._transport.close()

    # ----- barriers --------------------------------------------------------------------------

    @recorded("barrier", "barrier")
    def barrier(self, opts: Any = None, *, timeout: Any = None) -> Work:
        """Wait until all processes have called this."""
        return self._start(with_options(opts, BarrierOptions, timeout), algorithms.barrier, [])

    @recorded("monitored_barrier_", "monitored_barrier")
    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Wait until all processes have called this; rank 0 names those that have not.

        Args:
            timeout: how long rank 0 waits for the others.
            wait_all_ranks: whether it names all that are missing, not the first.

        Raises:
            RuntimeError: a process is missing (PyTorch's text).
        """
        self._wait_for_all(timeout, wait_all_ranks)

    def _wait_for_all(self, timeout: timedelta | None, wait_all_ranks: bool) -> None:
        deadline = self._deadline(timeout)

        def run(net: Transport, tag: int, _: Deadline) -> None:
            if net.rank:
                try:
                    net.send(0, tag, memoryview(b"\0"), deadline)
                    net.expect(0, tag, memoryview(bytearray(1))).wait(deadline)
                except RuntimeError as error:
                    raise RuntimeError(
                        f"Rank {net.rank} successfully reached monitoredBarrier, but received errors while waiting for "
                        "send/recv from rank 0. Please check rank 0 logs for faulty rank.\n Original exception: \n"
                        f"{error}") from None
                return
            milliseconds = int(deadline.seconds * 1000)
            receipts = {rank: net.expect(rank, tag, memoryview(bytearray(1))) for rank in range(1, net.size)}
            missing = []
            for rank, receipt in receipts.items():
                try:
                    receipt.wait(deadline)
                except RuntimeError as error:
                    if not deadline.seconds:
                        raise RuntimeError(f"Rank 0 timed out in monitoredBarrier after {milliseconds} ms.") from None
                    if not wait_all_ranks:
                        raise RuntimeError(f"[Rank 0]: Rank {rank} failed to pass monitoredBarrier in {milliseconds} ms"
                                           f"\n Original exception: \n{error}") from None
                    missing.append(str(rank))
            if missing:
                raise RuntimeError(f"[Rank 0]: Ranks {', '.join(missing)} failed to pass monitoredBarrier in "
                                   f"{milliseconds} ms")
            for rank in receipts:
                net.send(rank, tag, memoryview(b"\0"), deadline)

        opts = with_options(None, BarrierOptions)
        opts.asyncOp = False
        self._start(opts, run, [])

    # ----- messages --------------------------------------------------------------------------

    @recorded("send", "send")
    def send(self, tensors: Any, dstRank: int, tag: int = 0) -> Work:
        """Send a tensor to one process."""
        tensors = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        if len(tensors) != 1:
            raise RuntimeError("ProcessGroupGloo::send takes a single tensor")
        self._check_peer(dstRank)
        work = Work()
        self._messages += 1
        self._transport.send(dstRank, tag & (_COLLECTIVE - 1), algorithms.as_bytes(read(tensors[0])),
                             self._deadline(None))
        work._finish(list(tensors))
        return work

    def _check_peer(self, rank: int) -> None:
        if rank == self._rank:
            raise RuntimeError(f"rank {rank} cannot exchange messages with itself")
        if not 0 <= rank < self._size:
            raise RuntimeError(f"invalid rank: {rank} is not in [0, {self._size})")

    @recorded("recv_", "recv")
    def recv(self, tensors: Any, srcRank: int, tag: int = 0) -> Work:
        """Receive a tensor from one process."""
        self._check_peer(srcRank)
        return self._receive(tensors, srcRank, tag)

    @recorded("recv_any_source_", "recvAnySource")
    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        """Receive a tensor from any process; the work's `_source_rank()` says which."""
        return self._receive(tensors, None, tag)

    def _receive(self, tensors: Any, source: int | None, tag: int) -> Work:
        tensors = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        if len(tensors) != 1:
            raise RuntimeError("ProcessGroupGloo::recv takes a single tensor")
        self._messages += 1
        target = Target(tensors[0])
        receipt = self._transport.expect(source, tag & (_COLLECTIVE - 1), algorithms.as_bytes(target.flat))
        deadline = self._deadline(None)

        wait = in_profile(lambda: receipt.wait(deadline))

        def receive() -> tuple[int, list[Any]]:
            sender = wait()
            target.store()
            return sender, list(tensors)

        return ReceiveWork(receive, receipt.arrived)


def _connect(store: Store, rank: int, size: int, timeout: timedelta) -> tuple[Transport, Transport]:
    """What carries messages of programs, and what carries collectives."""
    sockets = SocketTransport(store, rank, size, timeout)
    if size > 1 and sockets.on_one_machine():
        return sockets, share_memory(store, rank, size, timeout) or sockets
    return sockets, sockets


__all__ = ["GlooBackend"]
