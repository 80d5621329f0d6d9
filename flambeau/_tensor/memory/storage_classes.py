"""The classes of storages, for checks by modules that need no storage themselves."""

from __future__ import annotations

from typing import Any

#: [the classes]: none until `memory.storage` is imported, before which no object is a storage
storage_classes: list[tuple[type[Any], ...]] = [()]

__all__ = ["storage_classes"]
