"""`torch._dynamo.utils`: what packages ask of the compiler."""

from __future__ import annotations

from typing import Any

from ... import devices


def is_compile_supported(device_type: Any) -> bool:
    """Whether compiled functions run on a device: on the CPU only.

    Args:
        device_type: a device, or a string such as `"cuda:0"`.

    >>> import flambeau as torch
    >>> from flambeau.compiler.dynamo.utils import is_compile_supported
    >>> is_compile_supported("cpu"), is_compile_supported(torch.device("meta"))
    (True, False)
    """
    return devices.device(device_type).type == "cpu"


__all__ = ["is_compile_supported"]
