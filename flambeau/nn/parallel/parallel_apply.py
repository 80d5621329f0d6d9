"""`parallel_apply`: modules, each on its accelerator, called at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..modules.module import Module

__all__ = ["parallel_apply"]


def parallel_apply(modules: Sequence[Module], inputs: Sequence[Any], kwargs_tup: Sequence[dict[str, Any]] | None = None,
                   devices: Sequence[Any] | None = None) -> list[Any]:
    """Raise RuntimeError: there is no accelerator.

    Args:
        modules: modules.
        inputs: the inputs of each.
        kwargs_tup: keyword arguments of each.
        devices: the device of each.

    Raises:
        AssertionError: the numbers differ.
        RuntimeError: there is no accelerator.
    """
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    if kwargs_tup is not None and len(modules) != len(kwargs_tup):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of kwargs "
                             f"{len(kwargs_tup)}")
    if devices is not None and len(modules) != len(devices):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of devices "
                             f"{len(devices)}")
    raise RuntimeError("Cannot access accelerator device when none is available.")
