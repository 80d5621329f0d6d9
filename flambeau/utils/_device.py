"""`torch.utils._device`: the default device as a context manager and as a decorator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..devices import ambient, device
from ._contextlib import context_decorator


class DeviceContext:
    """A context manager under which tensors are created on a device unless another one is given.

    >>> import flambeau as torch
    >>> from flambeau.utils._device import DeviceContext
    >>> with DeviceContext("meta"):
    ...     torch.ones(2).device
    device(type='meta')
    """

    def __init__(self, device_: Any) -> None:
        self.device = device(device_)

    def __enter__(self) -> None:
        self.device.__enter__()

    def __exit__(self, *exception: object) -> None:
        self.device.__exit__(*exception)


def device_decorator(device: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """Return `func` so that it runs under the default device `device`.

    >>> import flambeau as torch
    >>> from flambeau.utils._device import device_decorator
    >>> device_decorator(torch.device("meta"), torch.zeros)(2).device
    device(type='meta')
    """
    return context_decorator(lambda: DeviceContext(device), func)


def set_device(device: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator of functions that run under the default device `device`.

    >>> import flambeau as torch
    >>> from flambeau.utils._device import set_device
    >>> set_device("meta")(lambda: torch.zeros(2))().device
    device(type='meta')
    """
    return lambda func: device_decorator(device, func)


def __getattr__(name: str) -> Any:
    if name == "CURRENT_DEVICE":
        return ambient[0]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["DeviceContext", "device_decorator", "set_device"]
