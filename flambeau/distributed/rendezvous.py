"""How processes find each other: a URL or environment variables lead to a store, a rank and a world size."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import ParseResult, urlparse, urlunparse

from ..c10d.backend import DEFAULT_TIMEOUT
from ..c10d.stores import FileStore, PrefixStore, Store, TCPStore

_Found = Iterator[tuple[Store, int, int]]
_rendezvous_handlers: dict[str, Callable[..., _Found]] = {}

__all__ = ["register_rendezvous_handler", "rendezvous"]


def register_rendezvous_handler(scheme: str, handler: Callable[..., _Found]) -> None:
    """Add a kind of URL through which processes find each other.

    Args:
        scheme: the beginning of its URLs.
        handler: a generator of (store, rank, world size) for a URL.

    Raises:
        RuntimeError: there is such a kind already.

    >>> from flambeau.distributed import register_rendezvous_handler
    >>> register_rendezvous_handler("env", iter)
    Traceback (most recent call last):
    RuntimeError: Rendezvous handler for env:// already registered
    """
    if scheme in _rendezvous_handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _rendezvous_handlers[scheme] = handler


def _query(result: ParseResult) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in result.query.split("&") if pair)


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> _Found:
    """The stores, ranks and world sizes to which a URL leads, of which the first is used.

    Args:
        url: "env://", "tcp://host:port" or "file:///path", with "?rank=0&world_size=2" where the arguments are not
        given. rank: this process's number.
        world_size: the number of processes.
        kwargs: what the kind of URL takes: `timeout`.

    Raises:
        RuntimeError: an argument of a wrong type, or an unknown kind of URL.
        ValueError: something is missing in the URL or in the environment (PyTorch's texts).

    >>> import flambeau as torch
    >>> store, rank, size = next(torch.distributed.rendezvous("tcp://127.0.0.1:0?rank=0&world_size=1"))
    >>> rank, size
    (0, 1)
    """
    if not isinstance(url, (str, bytes)):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    if not isinstance(rank, numbers.Integral):
        raise RuntimeError(f"`rank` must be an integer. {rank}")
    if not isinstance(world_size, numbers.Integral):
        raise RuntimeError(f"`world_size` must be an integer. {world_size}")
    return _rendezvous_helper(url, rank, world_size, **kwargs)


def _rendezvous_helper(url: str, rank: int, world_size: int | None, **kwargs: Any) -> _Found:
    result = urlparse(url)
    size = int(os.environ.get("WORLD_SIZE", -1)) if world_size is None else world_size
    if rank != -1 or size != -1 or world_size is None:
        query = _query(result)
        if "rank" in query or "world_size" in query:
            raise AssertionError(f"The url: {url} has node-specific arguments(rank, world_size) already.")
        if rank != -1:
            query["rank"] = str(rank)
        if size != -1 or world_size is None:
            query["world_size"] = str(size)
        url = urlunparse(result._replace(query="&".join(f"{name}={value}" for name, value in query.items())))
    if result.scheme not in _rendezvous_handlers:
        raise RuntimeError(f"No rendezvous handler for {result.scheme}://")
    return _rendezvous_handlers[result.scheme](url, **kwargs)


def _error(scheme: str, text: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {text}")


def _use_libuv(query: dict[str, str]) -> bool:
    return query.get("use_libuv", os.environ.get("USE_LIBUV", "1")) == "1"


def _of_query(scheme: str, query: dict[str, str]) -> tuple[int, int]:
    if "rank" not in query:
        raise _error(scheme, "rank parameter missing")
    if "world_size" not in query:
        raise _error(scheme, "world size parameter missing")
    return int(query["rank"]), int(query["world_size"])


def _create_c10d_store(hostname: str, port: int, rank: int, world_size: int, timeout: timedelta,
                       use_libuv: bool = True) -> Store:
    """The store of a job: the launcher's, or one that the first process holds."""
    if not 0 <= port < 2 ** 16:
        raise ValueError(f"port must have value from 0 to 65535 but was {port}.")
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == str(True):
        store = TCPStore(hostname, port, world_size, False, timeout, wait_for_workers=False)
        return PrefixStore(f"attempt_{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    return TCPStore(hostname, port, world_size, rank == 0, timeout, multi_tenant=True, use_libuv=use_libuv)


def _of_file(url: str, **kwargs: Any) -> _Found:
    result = urlparse(url)
    if not result.path:
        raise _error("file", "path missing")
    rank, world_size = _of_query("file", _query(result))
    yield FileStore(result.path, world_size), rank, world_size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _of_tcp(url: str, timeout: timedelta = DEFAULT_TIMEOUT, **kwargs: Any) -> _Found:
    result = urlparse(url)
    if result.port is None:
        raise _error("tcp", "port number missing")
    rank, world_size = _of_query("tcp", _query(result))
    assert result.hostname is not None, "hostname cannot be None"
    store = _create_c10d_store(result.hostname, result.port, rank, world_size, timeout, _use_libuv(_query(result)))
    yield store, rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using tcp:// method")


def _of_environment(url: str, timeout: timedelta = DEFAULT_TIMEOUT, **kwargs: Any) -> _Found:
    def variable(name: str) -> str:
        value = os.environ.get(name)
        if not value:
            raise _error("env", f"environment variable {name} expected, but not set")
        return value

    query = _query(urlparse(url))
    rank = int(query["rank"] if "rank" in query else variable("RANK"))
    world_size = int(query["world_size"] if "world_size" in query else variable("WORLD_SIZE"))
    host, port = variable("MASTER_ADDR"), int(variable("MASTER_PORT"))
    yield _create_c10d_store(host, port, rank, world_size, timeout, _use_libuv(query)), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


for _scheme, _handler in (("tcp", _of_tcp), ("env", _of_environment), ("file", _of_file)):
    register_rendezvous_handler(_scheme, _handler)
