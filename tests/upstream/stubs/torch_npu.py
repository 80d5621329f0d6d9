"""Stub for the package of a device that is not there; a fork's test files import it."""

from __future__ import annotations

from typing import Any

from ..placeholder import Placeholder


class _Device:
    """The device's module: it says that there is none."""

    @staticmethod
    def is_available() -> bool:
        return False

    @staticmethod
    def device_count() -> int:
        return 0

    @staticmethod
    def get_device_name(index: int = 0) -> str:
        return ""

    def __getattr__(self, name: str) -> Any:
        return Placeholder(f"torch.npu.{name}", internal=True)


npu = _Device()
