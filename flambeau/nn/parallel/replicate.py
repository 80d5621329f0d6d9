"""`replicate`: copies of a module on several accelerators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .scatter_gather import check_device

__all__ = ["replicate"]


def replicate(network: Any, devices: Sequence[Any], detach: bool = False) -> list[Any]:
    """Raise, unless there are no devices: a CPU holds no copies.

    Args:
        network: the module.
        devices: the accelerators.
        detach: whether copies are detached from the module.

    Raises:
        ValueError: a device is the CPU.
        AssertionError: the parameters are on the CPU.

    >>> import flambeau as torch
    >>> torch.nn.parallel.replicate(torch.nn.Linear(1, 1), [])
    []
    """
    for each in devices:
        check_device(each)
    if devices and next(iter(network.parameters()), None) is not None:
        raise AssertionError("Broadcast function not implemented for CPU tensors")
    return []
