"""`torch.utils.deterministic`: whether memory is filled where determinism is required."""

from __future__ import annotations

import sys
from typing import Any

from ..settings import Settings
from ..switches import get_fill_uninitialized_memory, set_fill_uninitialized_memory


def _on_write(name: str, value: Any) -> None:
    set_fill_uninitialized_memory(value)


class _Settings(Settings):
    """The setting is kept where memory is filled: `torch._C` sets it, too."""

    @property
    def fill_uninitialized_memory(self) -> bool:
        return get_fill_uninitialized_memory()


settings = _Settings("torch.utils.deterministic", {"fill_uninitialized_memory": True}, _on_write)
sys.modules[__name__] = settings  # the module that an import gives

__all__ = ["settings"]
