"""Stores: maps of byte strings that several processes share."""

from __future__ import annotations

from .file_store import FileStore
from .hash_store import HashStore
from .prefix_store import PrefixStore
from .store import Store
from .store_collectives import _ControlCollectives, _StoreCollectives
from .tcp_store import TCPStore

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore", "_ControlCollectives",
           "_StoreCollectives"]
