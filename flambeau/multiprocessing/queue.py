"""Queues and connections that pickle with the pickler of `multiprocessing`."""

from __future__ import annotations

import io
import multiprocessing.queues
import pickle
from multiprocessing.reduction import ForkingPickler
from typing import Any

__all__ = ["ConnectionWrapper", "Queue", "SimpleQueue"]


class ConnectionWrapper:
    """A connection whose objects are pickled by `ForkingPickler`: tensors go by shared memory.

    >>> import flambeau as torch
    >>> from multiprocessing import Pipe
    >>> from flambeau.multiprocessing.queue import ConnectionWrapper
    >>> one, other = map(ConnectionWrapper, Pipe())
    >>> one.send(torch.ones(2))
    >>> other.recv()
    tensor([1., 1.])
    """

    def __init__(self, conn: Any) -> None:
        self.conn = conn

    def send(self, obj: Any) -> None:
        """Send an object."""
        buffer = io.BytesIO()
        ForkingPickler(buffer, pickle.HIGHEST_PROTOCOL).dump(obj)
        self.send_bytes(buffer.getvalue())

    def recv(self) -> Any:
        """Receive an object."""
        return pickle.loads(self.recv_bytes())

    def __getattr__(self, name: str) -> Any:
        if "conn" in self.__dict__:
            return getattr(self.conn, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute 'conn'")


class Queue(multiprocessing.queues.Queue):
    """A queue over `ConnectionWrapper`s.

    >>> import flambeau as torch
    >>> from multiprocessing import get_context
    >>> from flambeau.multiprocessing.queue import Queue
    >>> queue = Queue(ctx=get_context())
    >>> queue.put(torch.ones(2))
    >>> queue.get()
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._reader: Any = ConnectionWrapper(self._reader)
        self._writer: Any = ConnectionWrapper(self._writer)
        self._send = self._writer.send
        self._recv = self._reader.recv


class SimpleQueue(multiprocessing.queues.SimpleQueue):
    """A simple queue over `ConnectionWrapper`s.

    >>> import flambeau as torch
    >>> from multiprocessing import get_context
    >>> from flambeau.multiprocessing.queue import SimpleQueue
    >>> queue = SimpleQueue(ctx=get_context())
    >>> queue.put(torch.ones(2))
    >>> queue.get()
    tensor([1., 1.])
    """

    def _make_methods(self) -> None:
        if not isinstance(self._reader, ConnectionWrapper):
            self._reader: Any = ConnectionWrapper(self._reader)
            self._writer: Any = ConnectionWrapper(self._writer)
        parent: Any = super()
        if hasattr(parent, "_make_methods"):
            parent._make_methods()
