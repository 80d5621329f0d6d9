"""`torch.utils.deterministic`: whether memory is filled where determinism is required."""

from __future__ import annotations

import sys
from typing import Any

from ..settings import Settings
from ..switches import set_fill_uninitialized_memory


def _on_write(name: str, value: Any) -> None:
    set_fill_uninitialized_memory(value)


settings = Settings("torch.utils.deterministic", {"fill_uninitialized_memory": True}, _on_write)
sys.modules[__name__] = settings  # the module that an import gives

__all__ = ["settings"]
