"""Rendezvous: handlers, their parameters, and the registry."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from ..utils.distributed import get_free_port
from .errors import (
    RendezvousClosedError,
    RendezvousConnectionError,
    RendezvousError,
    RendezvousGracefulExitError,
    RendezvousStateError,
    RendezvousTimeoutError,
)

__all__ = ["RendezvousClosedError", "RendezvousConnectionError", "RendezvousError", "RendezvousGracefulExitError",
           "RendezvousHandler", "RendezvousHandlerCreator", "RendezvousHandlerRegistry", "RendezvousInfo",
           "RendezvousParameters", "RendezvousStateError", "RendezvousStoreInfo", "RendezvousTimeoutError",
           "rendezvous_handler_registry"]

_TRUE, _FALSE = ("1", "true", "t", "yes", "y"), ("0", "false", "f", "no", "n")


@dataclass
class RendezvousStoreInfo:
    """Where the programs' store is.

    Args:
        master_addr: the host.
        master_port: the port.
    """

    MASTER_ADDR_KEY: ClassVar[str] = "MASTER_ADDR"
    MASTER_PORT_KEY: ClassVar[str] = "MASTER_PORT"
    master_addr: str
    master_port: int

    @staticmethod
    def build(rank: int, store: Any, local_addr: str | None = None,
              server_port: int | None = None) -> RendezvousStoreInfo:
        """What the first machine chooses, and tells the others.

        Args:
            rank: this machine's number.
            store: through which it tells them.
            local_addr: this machine's address; default: its name.
            server_port: the port; default: a free one.

        >>> import flambeau as torch
        >>> from flambeau.distributed.elastic.rendezvous import RendezvousStoreInfo
        >>> RendezvousStoreInfo.build(0, torch.distributed.HashStore(), "host", 29500)
        RendezvousStoreInfo(master_addr='host', master_port=29500)
        """
        if rank == 0:
            store.set(RendezvousStoreInfo.MASTER_ADDR_KEY, (local_addr or socket.getfqdn()).encode())
            store.set(RendezvousStoreInfo.MASTER_PORT_KEY, str(server_port or get_free_port()).encode())
        return RendezvousStoreInfo(store.get(RendezvousStoreInfo.MASTER_ADDR_KEY).decode(),
                                   int(store.get(RendezvousStoreInfo.MASTER_PORT_KEY).decode()))


class RendezvousInfo:
    """What a machine has got by a rendezvous.

    Args:
        store: of the launchers.
        rank: this machine's number.
        world_size: how many machines there are.
        bootstrap_store_info: where the programs' store is.
    """

    def __init__(self, store: Any, rank: int, world_size: int, bootstrap_store_info: RendezvousStoreInfo) -> None:
        self._store, self._rank, self._world_size, self._info = store, rank, world_size, bootstrap_store_info

    @property
    def store(self) -> Any:
        """The store of the launchers."""
        return self._store

    @property
    def rank(self) -> int:
        """This machine's number."""
        return self._rank

    @property
    def world_size(self) -> int:
        """How many machines there are."""
        return self._world_size

    @property
    def bootstrap_store_info(self) -> RendezvousStoreInfo | None:
        """Where the programs' store is."""
        return self._info


class RendezvousHandler(ABC):
    """Where machines meet."""

    @abstractmethod
    def get_backend(self) -> str:
        """Its name."""

    @property
    def use_agent_store(self) -> bool:
        """Whether programs use the store of the launchers."""
        return False

    @abstractmethod
    def next_rendezvous(self) -> RendezvousInfo:
        """Wait for the others."""

    @abstractmethod
    def is_closed(self) -> bool:
        """Whether nobody may come any more."""

    @abstractmethod
    def set_closed(self) -> None:
        """Let nobody come any more."""

    @abstractmethod
    def num_nodes_waiting(self) -> int:
        """How many machines came late, and wait for the next rendezvous."""

    @abstractmethod
    def get_run_id(self) -> str:
        """The job's name."""

    @abstractmethod
    def shutdown(self) -> bool:
        """Give back what it holds; whether that went well."""


class RendezvousParameters:
    """Parameters of a handler.

    Args:
        backend: its name.
        endpoint: where: <host>[:<port>].
        run_id: the job's name.
        min_nodes, max_nodes: how many machines may take part.
        local_addr: this machine's address.
        kwargs: others.

    Raises:
        ValueError: no name, or impossible numbers (PyTorch's texts).

    >>> from flambeau.distributed.elastic.rendezvous import RendezvousParameters
    >>> RendezvousParameters("static", "host:29500", "job", 1, 1, timeout="60").get_as_int("timeout")
    60
    """

    def __init__(self, backend: str, endpoint: str, run_id: str, min_nodes: int, max_nodes: int,
                 local_addr: str | None = None, **kwargs: Any) -> None:
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        if min_nodes < 1:
            raise ValueError(f"The minimum number of rendezvous nodes ({min_nodes}) must be greater than zero.")
        if max_nodes < min_nodes:
            raise ValueError(f"The maximum number of rendezvous nodes ({max_nodes}) must be greater than or equal to "
                             f"the minimum number of rendezvous nodes ({min_nodes}).")
        self.backend, self.endpoint, self.run_id = backend, endpoint, run_id
        self.min_nodes, self.max_nodes, self.local_addr, self.config = min_nodes, max_nodes, local_addr, kwargs

    def get(self, key: str, default: Any = None) -> Any:
        """Another parameter.

        Args:
            key: its name.
            default: its value if it was not given.
        """
        return self.config.get(key, default)

    def get_as_bool(self, key: str, default: bool | None = None) -> bool | None:
        """Another parameter, which is yes or no.

        Args:
            key: its name.
            default: its value if it was not given.

        Raises:
            ValueError: it is neither (PyTorch's text).
        """
        value = self.get(key, default)
        if value is None or isinstance(value, bool):
            return value
        text = str(value).lower() if isinstance(value, (int, str)) else ""
        if text in _TRUE + _FALSE:
            return text in _TRUE
        raise ValueError(f"The rendezvous configuration option '{key}' does not represent a valid boolean value.")

    def get_as_int(self, key: str, default: int | None = None) -> int | None:
        """Another parameter, which is a number.

        Args:
            key: its name.
            default: its value if it was not given.

        Raises:
            ValueError: it is none (PyTorch's text).
        """
        value = self.get(key, default)
        if value is None:
            return None
        try:
            return int(value)
        except ValueError as error:
            raise ValueError(f"The rendezvous configuration option '{key}' does not represent a valid integer "
                             "value.") from error


RendezvousHandlerCreator = Callable[[RendezvousParameters], RendezvousHandler]


class RendezvousHandlerRegistry:
    """Handlers by name."""

    def __init__(self) -> None:
        self._registry: dict[str, RendezvousHandlerCreator] = {}

    def register(self, backend: str, creator: RendezvousHandlerCreator) -> None:
        """Add one.

        Args:
            backend: its name.
            creator: makes it of parameters.

        Raises:
            ValueError: no name, or another one's (PyTorch's texts).
        """
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        known = self._registry.setdefault(backend, creator)
        if known != creator:
            raise ValueError(f"The rendezvous backend '{backend}' cannot be registered with '{creator}' as it is "
                             f"already registered with '{known}'.")

    def create_handler(self, params: RendezvousParameters) -> RendezvousHandler:
        """Make one.

        Args:
            params: its parameters.

        Raises:
            ValueError: an unknown name (PyTorch's text).
            RuntimeError: what was made has another name (PyTorch's text).
        """
        creator = self._registry.get(params.backend)
        if creator is None:
            raise ValueError(f"The rendezvous backend '{params.backend}' is not registered. Did you forget to call "
                             "`register`?")
        handler = creator(params)
        if handler.get_backend() != params.backend:
            raise RuntimeError(f"The rendezvous backend '{handler.get_backend()}' does not match the requested backend "
                               f"'{params.backend}'.")
        return handler


rendezvous_handler_registry = RendezvousHandlerRegistry()
