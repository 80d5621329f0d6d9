"""Free ports of this machine."""

from __future__ import annotations

import socket


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


__all__ = ["get_free_port", "get_socket_with_port"]
