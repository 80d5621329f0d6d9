"""Names of backends, which of them there are, and which carries out collectives on which device."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

from ..c10d.process_group import BackendType

__all__ = ["Backend", "BackendConfig", "get_default_backend_for_device", "is_backend_available", "is_gloo_available",
           "is_mpi_available", "is_nccl_available", "is_ucc_available", "is_xccl_available"]


class _BackendPlugin(NamedTuple):
    creator_fn: Callable[..., Any]
    extended_api: bool


class Backend(str):
    """The name of a backend, in lower case.

    Args:
        name: the name.

    Raises:
        ValueError: it is not a text.

    >>> import flambeau as torch
    >>> torch.distributed.Backend("GLOO")
    'gloo'
    """

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, FAKE = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl", "fake"
    _plugins: dict[str, _BackendPlugin] = {}  # noqa: RUF012
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]  # noqa: RUF012
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}  # noqa: RUF012
    backend_capability = {GLOO: ["cpu", "cuda"], NCCL: ["cuda"], XCCL: ["xpu"], UCC: ["cpu", "cuda"],  # noqa: RUF012
                          MPI: ["cpu", "cuda"], FAKE: ["cpu", "cuda", "hpu", "xpu"]}
    backend_type_map = {UNDEFINED: BackendType.UNDEFINED, GLOO: BackendType.GLOO,  # noqa: RUF012
                        NCCL: BackendType.NCCL,
                        XCCL: BackendType.XCCL, UCC: BackendType.UCC, MPI: BackendType.MPI, FAKE: BackendType.CUSTOM}

    def __new__(cls, name: str) -> Backend:
        """Make the name, in lower case."""
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        value = getattr(Backend, name.upper(), Backend.UNDEFINED)
        return super().__new__(cls, name.lower() if value == Backend.UNDEFINED else value)

    @classmethod
    def register_backend(cls, name: str, func: Callable[..., Any], extended_api: bool = False,
                         devices: str | list[str] | None = None) -> None:
        """Add a backend.

        Args:
            name: its name.
            func: makes it of (store, rank, size, timeout), or with `extended_api` of two objects of options.
            extended_api: which arguments `func` takes.
            devices: the types of devices that it serves; the CPU and CUDA if None.

        Raises:
            AssertionError: there is one with this name.
        """
        name = name.lower()
        assert name == cls.FAKE or not hasattr(cls, name.upper()), f"{name.upper()} c10d backend already exist"
        assert name.upper() not in cls._plugins, f"{name.upper()} c10d backend creator function already exist"
        setattr(cls, name.upper(), name)
        if name not in cls.backend_list:
            cls.backend_list.append(name)
        types = ["cpu", "cuda"] if devices is None else [devices] if isinstance(devices, str) else list(devices)
        cls.backend_capability[name] = types
        if devices is not None:
            for each in types:
                cls.default_device_backend_map.setdefault(each, name)
        cls.backend_type_map[name] = BackendType.CUSTOM
        cls._plugins[name.upper()] = _BackendPlugin(func, extended_api)


class BackendConfig:
    """Which backend carries out collectives on which type of device.

    Args:
        backend: a backend's name, or "cpu:gloo,cuda:nccl".

    Raises:
        ValueError: not all parts name a device, or one is named twice.

    >>> import flambeau.distributed as dist
    >>> dist.BackendConfig("gloo").get_device_backend_map()
    {'cpu': 'gloo', 'cuda': 'gloo'}
    """

    def __init__(self, backend: str) -> None:
        self.device_backend_map: dict[str, str] = {}
        if backend == Backend.UNDEFINED:
            self.device_backend_map = {"cpu": Backend.GLOO}
        elif ":" in backend:
            for pair in backend.lower().split(","):
                parts = pair.split(":")
                if len(parts) != 2:
                    raise ValueError(
                        f"The custom backend string argument is invalid: {backend}.\n                Custom backend "
                        "string is an experimental feature where the backend string must be in the format:\n"
                        "                \"<device_type1>:<backend1>,<device_type2>:<backend2>...\". e.g. "
                        "'cpu:gloo,cuda:nccl'")
                if parts[0] in self.device_backend_map:
                    raise ValueError(f"Duplicate device type {parts[0]}                     in backend string: "
                                     f"{backend}")
                self.device_backend_map[parts[0]] = Backend(parts[1])
        elif backend.lower() in Backend.backend_list:
            self.device_backend_map = dict.fromkeys(Backend.backend_capability[backend.lower()], Backend(backend))
        else:
            self.device_backend_map = dict.fromkeys(("cpu", "cuda", "xpu"), Backend(backend))

    def __repr__(self) -> str:
        return ",".join(f"{device}:{backend}" for device, backend in self.device_backend_map.items())

    def get_device_backend_map(self) -> dict[str, str]:
        """The backend of each type of device."""
        return self.device_backend_map


def is_mpi_available() -> bool:
    """Whether processes can exchange messages over MPI: mpi4py is installed."""
    return importlib.util.find_spec("mpi4py") is not None


def is_gloo_available() -> bool:
    """Whether processes can exchange messages over sockets: True.

    >>> import flambeau as torch
    >>> torch.distributed.is_gloo_available()
    True
    """
    return True


def is_nccl_available() -> bool:
    """Whether there is NCCL: False."""
    return False


def is_ucc_available() -> bool:
    """Whether there is UCC: False."""
    return False


def is_xccl_available() -> bool:
    """Whether there is XCCL: False."""
    return False


def is_backend_available(backend: str) -> bool:
    """Whether a backend, or each of "cpu:gloo,cuda:nccl", is there.

    Args:
        backend: its name.

    >>> import flambeau as torch
    >>> torch.distributed.is_backend_available("gloo"), torch.distributed.is_backend_available("nccl")
    (True, False)
    """
    if ":" in backend:
        return all(is_backend_available(pair.split(":")[-1]) for pair in backend.split(","))
    asked = globals().get(f"is_{backend.lower()}_available")
    return bool(asked()) if asked else backend.upper() in Backend._plugins


def get_default_backend_for_device(device: Any) -> str:
    """The backend that carries out collectives on a device.

    Args:
        device: the device, or its type.

    Raises:
        ValueError: there is none.

    >>> import flambeau as torch
    >>> torch.distributed.get_default_backend_for_device("cpu")
    'gloo'
    """
    kind = device.type if hasattr(device, "type") else str(device).partition(":")[0]
    found = Backend.default_device_backend_map.get(kind)
    if found is None:
        raise ValueError(f"Default backend not registered for device : {device}")
    return found
