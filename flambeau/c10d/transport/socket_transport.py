"""Messages over sockets: Unix sockets within a machine, TCP between machines, found through a store.

A process listens on one endpoint. The first message to another process opens a connection, which carries messages in
that direction only. A thread reads each incoming connection into buffers that wait for messages, so that a sender never
waits for the algorithm of its receiver.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import uuid
import weakref
from datetime import timedelta

from ..stores.store import Store
from . import meeting
from .matching import MatchingQueues
from .transport import Buffer, Deadline, Receipt, Transport, departure, too_late, undelivered, unequal

_HELLO = struct.Struct("<32sI")  # the receiving transport's token, the sender's rank
_HEADER = struct.Struct("<QQ")  # tag, size
_BUFFER = 4 << 20  # bytes that the system may hold for one connection
_LEAST = 0.001  # seconds: a time limit of 0 is that of a socket that never waits


def _fill(connection: socket.socket, buffer: Buffer) -> bool:
    """Read exactly the bytes that a buffer holds; False at the connection's end."""
    while len(buffer):
        # one wait for all bytes: each return to Python waits for the interpreter's lock
        count = connection.recv_into(buffer, 0, socket.MSG_WAITALL)
        if not count:
            return False
        buffer = buffer[count:]
    return True


def _host_key() -> str:
    """What two processes share if Unix sockets connect them: the machine's boot, its network namespace."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        return f"{boot}-{os.readlink('/proc/self/ns/net')}"
    except OSError:
        return uuid.uuid4().hex  # connects by TCP


class _Endpoint:
    """The sockets on which this process accepts connections of all its transports."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.transports: weakref.WeakValueDictionary[bytes, SocketTransport] = weakref.WeakValueDictionary()
        self.waiting = threading.Condition()
        self.tcp = socket.create_server(("", 0), backlog=1024)
        self.unix: socket.socket | None = None
        path = f"\0flambeau-{self.process}-{uuid.uuid4().hex}"  # of the abstract namespace: no file remains
        with contextlib.suppress(OSError, AttributeError):
            self.unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.unix.bind(path)
            self.unix.listen(1024)
        self.path = path if self.unix is not None else ""
        for listener in (self.tcp, self.unix):
            if listener is not None:
                threading.Thread(target=self._accept, args=(listener,), name="c10d accept", daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._greet, args=(connection,), name="c10d receive", daemon=True).start()

    def _greet(self, connection: socket.socket) -> None:
        hello = bytearray(_HELLO.size)
        try:
            if not _fill(connection, memoryview(hello)):
                return
            token, rank = _HELLO.unpack(hello)
            transport = self.transports.get(token)
            if transport is None:
                return
            mailbox = transport.mailbox
            del transport  # a transport that is forgotten ends
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
            mailbox.read(connection, rank)
        except OSError:
            pass
        finally:
            connection.close()


_endpoint: _Endpoint | None = None
_endpoint_lock = threading.Lock()


def _own_endpoint() -> _Endpoint:
    global _endpoint
    with _endpoint_lock:
        if _endpoint is None or _endpoint.process != os.getpid():  # a forked process listens on its own
            _endpoint = _Endpoint()
        return _endpoint


class _Expected(Receipt):
    """A buffer that waits for a message."""

    def __init__(self, mailbox: _Mailbox, peer: int | None, tag: int, buffer: Buffer) -> None:
        self.mailbox, self.peer, self.tag, self.buffer = mailbox, peer, tag, buffer
        self.sender = -1
        self.done = False
        self.error: str | None = None

    def arrived(self) -> bool:
        return self.done or self.error is not None

    def wait(self, deadline: Deadline) -> int:
        if not self.done:
            with self.mailbox.changed:
                while not self.done:
                    if self.error is not None:
                        raise RuntimeError(self.error)
                    left = deadline.left()
                    if left <= 0:
                        self.mailbox.queues.forget(self.peer, self.tag, self)
                        raise RuntimeError(too_late(deadline, self.peer))
                    self.mailbox.changed.wait(left)
        if self.error is not None:
            raise RuntimeError(self.error)
        return self.sender


class _Mailbox:
    """Messages that came before they were expected, and buffers that wait for messages."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.queues: MatchingQueues[_Expected] = MatchingQueues()
        self.left: dict[int, str] = {}  # rank -> why no more messages come from it
        self.connections: set[socket.socket] = set()
        self.closed = False

    def expect(self, peer: int | None, tag: int, buffer: Buffer) -> _Expected:
        receipt = _Expected(self, peer, tag, buffer)
        with self.changed:
            kept = self.queues.take_message(peer, tag)
            if kept is not None:
                self._deliver(receipt, *kept)
                return receipt
            if peer is not None and peer in self.left:
                receipt.error = self.left[peer]
            else:
                self.queues.expect(peer, tag, receipt)
        return receipt

    def _deliver(self, receipt: _Expected, rank: int, message: bytearray) -> None:
        if len(message) != len(receipt.buffer):
            receipt.error = unequal(len(message), rank, len(receipt.buffer))
        else:
            receipt.buffer[:] = message
        receipt.sender, receipt.done = rank, True

    def read(self, connection: socket.socket, rank: int) -> None:
        """Read messages from one process until it leaves."""
        header = bytearray(_HEADER.size)
        why = departure(rank)
        with self.changed:
            if self.closed:
                return
            self.connections.add(connection)
        receipt = None
        try:
            while _fill(connection, memoryview(header)):
                tag, size = _HEADER.unpack(header)
                with self.changed:
                    receipt = self.queues.take(rank, tag)
                if receipt is not None and len(receipt.buffer) == size:
                    if not _fill(connection, receipt.buffer):
                        return
                    with self.changed:
                        receipt.sender, receipt.done = rank, True
                        self.changed.notify_all()
                    receipt = None
                    continue
                message = bytearray(size)
                if not _fill(connection, memoryview(message)):
                    return
                with self.changed:
                    receipt = receipt or self.queues.take(rank, tag)
                    if receipt is None:
                        self.queues.keep(rank, tag, message)
                    else:
                        self._deliver(receipt, rank, message)
                        receipt = None
                    self.changed.notify_all()
        except OSError as error:
            if not isinstance(error, ConnectionError):
                why = f"Connection to rank {rank} is lost: {error}"
        finally:
            with self.changed:
                self.connections.discard(connection)
                self._note_departure(rank, why, receipt)

    def _note_departure(self, rank: int, why: str, partial: _Expected | None) -> None:
        self.left[rank] = why
        if partial is not None:
            partial.error = why
        for receipt in self.queues.receives():
            if receipt.peer == rank:
                receipt.error = why
        self.changed.notify_all()

    def close(self) -> None:
        with self.changed:
            self.closed = True
            for receipt in self.queues.receives():
                receipt.error = "The process group was destroyed while a message was expected"
            self.queues.discard()
            self.changed.notify_all()
            for connection in self.connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


class SocketTransport(Transport):
    """Messages over sockets; processes find each other through a store.

    Args:
        store: the store of these processes alone.
        rank, size: this process's number, and how many there are.
        timeout: how long to wait for the others.

    Raises:
        DistStoreError: processes have not come in time; the text names their ranks.
    """

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self.mailbox = _Mailbox()
        self._token = uuid.uuid4().hex.encode()
        self._addresses: list[str] = []
        self._outgoing: dict[int, socket.socket] = {}
        self._locks = [threading.Lock() for _ in range(size)]
        self._process = os.getpid()
        if size > 1:
            self._endpoint = _own_endpoint()
            self._endpoint.transports[self._token] = self
            port = self._endpoint.tcp.getsockname()[1]
            host = self._own_host(store)
            own = "|".join([self._token.decode(), _host_key(), self._endpoint.path, host, str(port)])
            # afterwards, the store is not needed any more
            self._addresses = meeting.exchange(store, "address", own, rank, size, timeout)

    def on_one_machine(self) -> bool:
        """Whether all processes run on this machine."""
        return len({address.split("|")[1] for address in self._addresses}) == 1

    @staticmethod
    def _own_host(store: Store) -> str:
        """The address at which others reach this machine: GLOO_SOCKET_IFNAME's, or the one that reaches the store."""
        interface = os.environ.get("GLOO_SOCKET_IFNAME")
        if interface:
            import fcntl

            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                request = struct.pack("256s", interface.split(",")[0].encode()[:15])
                return socket.inet_ntoa(fcntl.ioctl(probe.fileno(), 0x8915, request)[20:24])  # SIOCGIFADDR
        store = getattr(store, "_underlying_non_prefix_store", store)
        master = getattr(store, "host", "") or os.environ.get("MASTER_ADDR", "")
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((master or "10.255.255.255", 1))  # sends nothing: the route decides on the address
            return str(probe.getsockname()[0])
        return "127.0.0.1"

    def _connect(self, peer: int, deadline: Deadline) -> socket.socket:
        connection = self._outgoing.get(peer)
        if connection is not None:
            return connection
        token, key, path, host, port = self._addresses[peer].split("|")
        if path and key == _host_key():
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.connect(path)
        else:
            connection = socket.create_connection((host, int(port)), timeout=max(_LEAST, deadline.left()))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        connection.sendall(_HELLO.pack(token.encode(), self.rank))
        self._outgoing[peer] = connection
        return connection

    def send(self, peer: int, tag: int, buffer: Buffer, deadline: Deadline) -> None:
        if peer == self.rank:
            raise ValueError("a process sends no message to itself")
        with self._locks[peer]:
            try:
                connection = self._connect(peer, deadline)
                connection.settimeout(max(_LEAST, deadline.left()))
                header = _HEADER.pack(tag, len(buffer))
                if len(buffer) <= 1 << 16:
                    connection.sendall(header + bytes(buffer))
                else:
                    connection.sendall(header)
                    connection.sendall(buffer)
            except TimeoutError:
                self._give_up(peer)
                raise RuntimeError(undelivered(deadline, peer)) from None
            except OSError as error:
                gone = isinstance(error, (BrokenPipeError, ConnectionError, FileNotFoundError))
                why = self.mailbox.left.get(peer) or (
                    departure(peer) if gone else f"Connection to rank {peer} is lost: {error}")
                raise RuntimeError(why) from None
        self._count(len(buffer))

    def _give_up(self, peer: int) -> None:
        """Close a connection in which half a message may be: what follows would be read as the rest of it."""
        connection = self._outgoing.pop(peer, None)
        if connection is not None:
            connection.close()

    def expect(self, peer: int | None, tag: int, buffer: Buffer) -> Receipt:
        return self.mailbox.expect(peer, tag, buffer)

    def close(self) -> None:
        if os.getpid() != self._process:
            return
        self.mailbox.close()
        for connection in self._outgoing.values():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self._outgoing.clear()

    def __del__(self) -> None:
        if hasattr(self, "_outgoing"):
            self.close()


__all__ = ["SocketTransport"]
