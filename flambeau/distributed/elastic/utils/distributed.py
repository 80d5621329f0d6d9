"""Free ports of this machine, and stores of launchers."""

from __future__ import annotations

import os
import socket
from datetime import timedelta

from ....c10d.errors import DistNetworkError
from ....c10d.stores import TCPStore
from .logging import get_logger
from .store import barrier

logger = get_logger(__name__)


def create_c10d_store(is_server: bool, server_addr: str, server_port: int = -1, world_size: int = 1,
                      timeout: float = 600, wait_for_workers: bool = True, retries: int = 3,
                      use_libuv: bool | None = None) -> TCPStore:
    """A store over TCP, at a free port if none is given.

    Args:
        is_server: whether this process serves it.
        server_addr: the host.
        server_port: the port; -1: a free one, for one process.
        world_size: the number of processes.
        timeout: seconds.
        wait_for_workers: wait until all have come.
        retries: how many free ports are tried, if others take them first.
        use_libuv: without effect; the variable USE_LIBUV decides.

    Raises:
        ValueError: several processes and no port (PyTorch's text).
        DistNetworkError: the port is taken, or the server not reached.
        DistStoreError: not all have come in time.

    >>> from flambeau.distributed.elastic.utils.distributed import create_c10d_store
    >>> store = create_c10d_store(True, "localhost")
    >>> store.set("key", "value")
    >>> store.get("key")
    b'value'
    """
    if use_libuv is not None:
        logger.warning("argument use_libuv is deprecated and ignored. Set USE_LIBUV environment variable to \"0\" to "
                       "disable libuv, or \"1\" to enable it. If the env var is not set, libuv will be used by "
                       "default.")
    if server_port == -1 and world_size > 1:
        raise ValueError(f"server_port must be specified when world_size > 1, got server_port={server_port}, "
                         f"world_size={world_size}")
    left = retries if server_port == -1 and is_server else 1
    while True:
        left -= 1
        port = get_free_port() if server_port == -1 else server_port
        try:
            store = TCPStore(server_addr, port, world_size, is_server, timedelta(seconds=timeout), wait_for_workers,
                             use_libuv=os.environ.get("USE_LIBUV", "1") == "1")
        except DistNetworkError:
            if not left:
                raise
        else:
            if wait_for_workers:
                barrier(store, world_size, "_tcp_store/num_members", timeout)
            return store


def get_socket_with_port() -> socket.socket:
    """A socket that listens at a free port of this machine; whoever gets it closes it.

    >>> from flambeau.distributed.elastic.utils.distributed import get_socket_with_port
    >>> with get_socket_with_port() as listener:
    ...     listener.getsockname()[1] > 0
    True
    """
    for family, kind, protocol, _, _ in socket.getaddrinfo("localhost", None, socket.AF_UNSPEC, socket.SOCK_STREAM):
        listener = socket.socket(family, kind, protocol)
        try:
            listener.bind(("localhost", 0))
            listener.listen(0)
        except OSError:
            listener.close()
        else:
            return listener
    raise RuntimeError("Failed to create a socket")


def get_free_port() -> int:
    """The number of a port of this machine that nobody listens at.

    >>> from flambeau.distributed.elastic.utils.distributed import get_free_port
    >>> 0 < get_free_port() < 65536
    True
    """
    with get_socket_with_port() as listener:
        port: int = listener.getsockname()[1]
        return port


__all__ = ["create_c10d_store", "get_free_port", "get_socket_with_port"]
