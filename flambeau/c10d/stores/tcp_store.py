"""`TCPStore`: a store in the memory of one process, which others reach over TCP."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ..errors import DistNetworkError, DistStoreError, QueueEmptyError
from .hash_store import HashStore
from .store import DEFAULT_TIMEOUT, Store, as_bytes, checked_text, milliseconds

_COUNT, _LENGTH = struct.Struct("<I"), struct.Struct("<Q")
_ERRORS = {each.__name__: each for each in (DistStoreError, QueueEmptyError, ValueError)}
_JOINED = "init/"  # the key that counts the processes that have joined
_SLACK = 5.0  # seconds that a reply may take longer than the wait that it reports


def _read_exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise DistNetworkError("Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server "
                                   "shutdown or crash?")
        data += part
    return bytes(data)


def _read_fields(connection: socket.socket) -> list[bytes]:
    count, = _COUNT.unpack(_read_exactly(connection, _COUNT.size))
    return [_read_exactly(connection, _LENGTH.unpack(_read_exactly(connection, _LENGTH.size))[0]) for _ in range(count)]


def _write_fields(connection: socket.socket, fields: Sequence[bytes]) -> None:
    connection.sendall(b"".join([_COUNT.pack(len(fields)), *(_LENGTH.pack(len(each)) + each for each in fields)]))


class _Service:
    """What serves the values: a thread that accepts connections, and one for each of them."""

    def __init__(self, listener: socket.socket) -> None:
        self.values = HashStore()
        self.listener = listener
        self.connections: set[socket.socket] = set()
        threading.Thread(target=self._accept, name="TCPStore", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), name="TCPStore client", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            while True:
                name, timeout, *fields = _read_fields(connection)
                try:
                    reply = [b"", *self._answer(name.decode(), int(timeout), fields)]
                except (DistStoreError, ValueError) as error:
                    reply = [type(error).__name__.encode(), str(error).encode()]
                _write_fields(connection, reply)
        except (OSError, DistNetworkError):
            pass
        finally:
            self.connections.discard(connection)
            connection.close()

    def _answer(self, name: str, timeout: int, fields: list[bytes]) -> list[bytes]:
        values, within = self.values, timedelta(milliseconds=timeout)
        keys = [each.decode() for each in fields] if name in ("get", "wait", "check") else [fields[0].decode()]
        if name in ("get", "wait"):
            try:
                values.wait(keys, within)
            except DistStoreError:
                names = ", ".join(f"/{key}" for key in keys)
                raise DistStoreError(f"wait timeout after {timeout}ms, keys: {names}") from None
            return values.multi_get(keys) if name == "get" else []
        if name == "check":
            return [b"1" if values.check(keys) else b"0"]
        if name == "set":
            values.multi_set([each.decode() for each in fields[::2]], fields[1::2])
            return []
        if name == "add":
            return [str(values.add(keys[0], int(fields[1]))).encode()]
        if name == "compare_set":
            return [values.compare_set(keys[0], *fields[1:])]
        if name == "delete_key":
            return [b"1" if values.delete_key(keys[0]) else b"0"]
        if name == "append":
            values.append(keys[0], fields[1])
            return []
        if name == "queue_push":
            values.queue_push(keys[0], fields[1])
            return []
        if name == "queue_pop":
            try:
                return [values.pop_within(keys[0], within)]
            except QueueEmptyError:
                raise
            except DistStoreError:
                raise DistStoreError(f"wait timeout after {timeout}ms, keys: /{keys[0]}") from None
        if name == "queue_len":
            return [str(values.queue_len(keys[0])).encode()]
        if name == "list_keys":
            return [each.encode() for each in values.list_keys()]
        raise ValueError(f"TCPStore has no request {name}")

    def close(self) -> None:
        """Stop to accept connections and close those there are."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self.listener.close()
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Server:
    """The owner of a service: its threads end with it."""

    def __init__(self, listener: socket.socket) -> None:
        self.port: int = listener.getsockname()[1]
        self._service, self._process = _Service(listener), os.getpid()

    def __del__(self) -> None:
        if os.getpid() == self._process:  # a forked process leaves its parent's connections open
            self._service.close()


_servers: dict[int, Any] = {}  # port -> a weak reference to the server that other stores of this process may share


def _listen(port: int) -> socket.socket:
    try:
        listener = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        any_address = "::"
    except OSError:  # a machine without IPv6
        listener, any_address = socket.socket(socket.AF_INET, socket.SOCK_STREAM), "0.0.0.0"
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((any_address, port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise DistNetworkError(
            f"The server socket has failed to listen on any local network address. port: {port}, useIpv6: false, code: "
            f"-{error.errno}, name: {errno.errorcode.get(error.errno or 0, '?')}, message: "
            f"{os.strerror(error.errno or 0).lower()}") from None
    return listener


def _connect(host: str, port: int, timeout: timedelta) -> socket.socket:
    end, pause = time.monotonic() + timeout.total_seconds(), 0.01
    while True:
        try:
            connection = socket.create_connection((host, port), timeout=max(0.01, end - time.monotonic()))
        except OSError:
            if time.monotonic() + pause >= end:
                raise DistNetworkError(f"The client socket has timed out after {milliseconds(timeout)}ms while trying "
                                       f"to connect to ({host}, {port}).") from None
            time.sleep(pause)
            pause = min(1.0, 2 * pause)
            continue
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


class TCPStore(Store):
    """A store in the memory of one process, the master, which the others reach over TCP.

    Args:
        host_name: the master's host.
        port: the master's port; 0 lets the master choose a free one, see `port`.
        world_size: the number of processes; None if it is not known.
        is_master: whether this process holds the values.
        timeout: how long to wait for the master, and for keys.
        wait_for_workers: whether the master waits until `world_size` processes have joined.
        multi_tenant: whether masters of this process on one port share their values.
        master_listen_fd: a socket of the master that listens already.
        use_libuv: without effect.

    Raises:
        DistNetworkError: the master cannot be reached, or its port is in use.
        DistStoreError: processes have not joined in time.

    >>> import flambeau as torch
    >>> master = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    >>> worker = torch.distributed.TCPStore("127.0.0.1", master.port)
    >>> worker.set("key", "value"); master.get("key")
    b'value'
    """

    def __init__(self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
                 timeout: timedelta = DEFAULT_TIMEOUT, wait_for_workers: bool = True, multi_tenant: bool = False,
                 master_listen_fd: int | None = None, use_libuv: bool = True) -> None:
        self._host, self._port, self._timeout, self._use_libuv = host_name, port, timeout, use_libuv
        self._lock = threading.Lock()
        self._server = self._own_server(port, multi_tenant, master_listen_fd) if is_master else None
        if self._server is not None:
            self._port = self._server.port
        self._connection = _connect(host_name, self._port, timeout)
        if wait_for_workers and world_size is not None and world_size > 0:
            self._join(world_size)

    @staticmethod
    def _own_server(port: int, multi_tenant: bool, listen_fd: int | None) -> _Server:
        import weakref

        shared = _servers[port]() if multi_tenant and port in _servers else None
        if shared is not None:
            return shared
        if listen_fd is None:
            bound = _listen(port)
        else:
            bound = socket.socket(fileno=listen_fd)
            bound.listen()
        server = _Server(bound)
        if multi_tenant:
            _servers[server.port] = weakref.ref(server)
        return server

    def _join(self, world_size: int) -> None:
        joined = self.add(_JOINED, 1)
        if self._server is None:
            return
        end = time.monotonic() + self._timeout.total_seconds()
        while joined < world_size:
            if time.monotonic() > end:
                # PyTorch reports the seconds after the last look, which is one later
                raise DistStoreError(f"Timed out after {int(self._timeout.total_seconds()) + 1} seconds waiting for "
                                     f"clients. {joined}/{world_size} clients joined.")
            time.sleep(0.01)
            joined = self.add(_JOINED, 0)

    host = property(lambda self: self._host, doc="""The master's host.""")
    port = property(lambda self: self._port, doc="""The master's port.""")
    libuvBackend = property(lambda self: self._use_libuv, doc="""What `use_libuv` was.""")  # noqa: N815

    def __repr__(self) -> str:
        def text(address: Any) -> str:
            host = address[0]
            return f"[{host if ':' in host else '::ffff:' + host}]:{address[1]}"

        try:
            client = (f"TCPClient(SocketImpl(fd={self._connection.fileno()}, "
                      f"addr={text(self._connection.getsockname())}, remote={text(self._connection.getpeername())}))")
        except OSError:
            client = "<nullptr>"
        server = "<nullptr>" if self._server is None else f"TCPServer(port={self._server.port})"
        return f"TCPStore(client={client}, server={server})"

    def _ask(self, name: str, *fields: bytes, timeout: timedelta | None = None) -> list[bytes]:
        wait = self._timeout if timeout is None else timeout
        with self._lock:
            try:
                self._connection.settimeout(wait.total_seconds() + _SLACK)
                _write_fields(self._connection, [name.encode(), str(milliseconds(wait)).encode(), *fields])
                error, *values = _read_fields(self._connection)
            except BrokenPipeError:
                raise DistNetworkError("Broken pipe") from None
            except ConnectionResetError:
                raise DistNetworkError("Connection reset by peer") from None
            except TimeoutError:
                raise DistNetworkError(f"Socket Timeout: {self._host}:{self._port} does not answer") from None
        if error:
            raise _ERRORS[error.decode()](values[0].decode())
        return values

    def set(self, key: str, value: str | bytes) -> None:
        checked_text(self, "set", key, value)
        self._ask("set", key.encode(), as_bytes(value))

    def get(self, key: str) -> bytes:
        checked_text(self, "get", key)
        return self._ask("get", key.encode())[0]

    def add(self, key: str, amount: int) -> int:
        return int(self._ask("add", key.encode(), str(amount).encode())[0])

    def check(self, keys: Sequence[str]) -> bool:
        return self._ask("check", *map(str.encode, keys))[0] == b"1"

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        self._ask("wait", *map(str.encode, keys), timeout=timeout)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        return self._ask("compare_set", key.encode(), as_bytes(expected_value), as_bytes(desired_value))[0]

    def delete_key(self, key: str) -> bool:
        return self._ask("delete_key", key.encode())[0] == b"1"

    def num_keys(self) -> int:
        return len(self.list_keys())

    def list_keys(self) -> list[str]:
        return [each.decode() for each in self._ask("list_keys", b"")]

    def has_extended_api(self) -> bool:
        return True

    def append(self, key: str, value: str | bytes) -> None:
        self._ask("append", key.encode(), as_bytes(value))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return self._ask("get", *map(str.encode, keys))

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        if len(keys) != len(values):
            raise DistStoreError("multiSet keys and values vectors must be of same size")
        self._ask("set", *(each for pair in zip(map(str.encode, keys), map(as_bytes, values), strict=True)
                           for each in pair))

    def queue_push(self, key: str, value: str | bytes) -> None:
        self._ask("queue_push", key.encode(), as_bytes(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self._ask("queue_pop", key.encode(), timeout=None if block else timedelta())[0]

    def queue_len(self, key: str) -> int:
        return int(self._ask("queue_len", key.encode())[0])

    def clone(self) -> Store:
        return TCPStore(self._host, self._port, None, timeout=self._timeout)

    def __del__(self) -> None:
        connection = getattr(self, "_connection", None)
        if connection is not None:
            connection.close()


__all__ = ["TCPStore"]
