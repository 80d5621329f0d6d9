"""Texts that name endpoints and options, this machine's names, and a timer."""

from __future__ import annotations

import ipaddress
import random
import re
import socket
import time
import weakref
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread
from typing import Any

__all__ = ["parse_rendezvous_endpoint"]


def _parse_rendezvous_config(config_str: str) -> dict[str, str]:
    """Options from "<key>=<value>,...".

    Raises:
        ValueError: it has another form (PyTorch's text).
    """
    config = {}
    for pair in config_str.strip().split(",") if config_str.strip() else []:
        key, _, value = (part.strip() for part in pair.partition("="))
        if not key:
            raise ValueError("The rendezvous configuration string must be in format "
                             "<key1>=<value1>,...,<keyN>=<valueN>.")
        if not value:
            raise ValueError(f"The rendezvous configuration option '{key}' must have a value specified.")
        config[key] = value
    return config


def _try_parse_port(port_str: str) -> int | None:
    """A port from its digits."""
    return int(port_str) if port_str and re.match(r"^[0-9]{1,5}$", port_str) else None


def parse_rendezvous_endpoint(endpoint: str | None, default_port: int) -> tuple[str, int]:
    """Host and port.

    Args:
        endpoint: <host>[:<port>]; an IPv6 address in brackets.
        default_port: the port if there is none.

    Raises:
        ValueError: it has another form (PyTorch's texts).

    >>> from flambeau.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint
    >>> parse_rendezvous_endpoint("[::1]:29400", 1), parse_rendezvous_endpoint("", 1)
    (('::1', 29400), ('localhost', 1))
    """
    endpoint = (endpoint or "").strip()
    if not endpoint:
        return "localhost", default_port
    bracketed = endpoint[0] == "[" and endpoint[-1] == "]"
    host, colon, text = (endpoint, "", "") if bracketed else endpoint.rpartition(":")
    if not colon:
        host = endpoint
    if len(host) > 1 and host[0] == "[" and host[-1] == "]":
        host = host[1:-1]
    port = _try_parse_port(text) if colon else default_port
    if port is None or port >= 2 ** 16:
        raise ValueError(f"The port number of the rendezvous endpoint '{endpoint}' must be an integer between 0 and "
                         "65536.")
    if not re.match(r"^[\w\.:-]+$", host):
        raise ValueError(f"The hostname of the rendezvous endpoint '{endpoint}' must be a dot-separated list of "
                         "labels, an IPv4 address, or an IPv6 address.")
    return host, port


def _matches_machine_hostname(host: str) -> bool:
    """Whether a host is this machine."""
    own = socket.gethostname()
    if host in ("localhost", own):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if address is not None and address.is_loopback:
        return True

    def found(name: str) -> list[Any]:
        try:
            return socket.getaddrinfo(name, None, proto=socket.IPPROTO_TCP, flags=socket.AI_CANONNAME)
        except (ValueError, socket.gaierror):
            return []

    theirs = {each[4][0] for each in found(host)} | ({str(address)} if address is not None else set())
    return any(each[3] == host or each[4][0] in theirs for each in found(own))


def _delay(seconds: float | tuple[float, float]) -> None:
    """Sleep so long, or a random time between two; not for less than 10 ms."""
    if isinstance(seconds, tuple):
        seconds = random.uniform(*seconds)
    if seconds >= 0.01:
        time.sleep(seconds)


class _PeriodicTimer:
    """Calls a function again and again, in a thread that ends with this object."""

    def __init__(self, interval: timedelta, function: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        self._call = (interval.total_seconds(), function, args, kwargs)
        self._name: str | None = None
        self._thread: Thread | None = None
        self._finalizer: Any = None

    @property
    def name(self) -> str | None:
        """The thread's name."""
        return self._name

    def set_name(self, name: str) -> None:
        """Name the thread, before it starts."""
        if self._thread:
            raise RuntimeError("The timer has already started.")
        self._name = name

    def start(self) -> None:
        """Start it."""
        if self._thread:
            raise RuntimeError("The timer has already started.")
        stop = Event()
        self._thread = Thread(target=self._run, name=self._name or "PeriodicTimer", args=(stop, *self._call),
                              daemon=True)  # which knows nothing of this object
        self._finalizer = weakref.finalize(self, self._stop_thread, self._thread, stop)
        self._finalizer.atexit = False
        self._thread.start()

    def cancel(self) -> None:
        """End it."""
        if self._finalizer:
            self._finalizer()

    @staticmethod
    def _run(stop: Event, interval: float, function: Callable[..., None], args: tuple[Any, ...],
             kwargs: dict[str, Any]) -> None:
        while not stop.wait(interval):
            function(*args, **kwargs)

    @staticmethod
    def _stop_thread(thread: Thread, stop_event: Event) -> None:
        stop_event.set()
        thread.join()
