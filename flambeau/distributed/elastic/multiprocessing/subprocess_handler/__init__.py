"""`torch.distributed.elastic.multiprocessing.subprocess_handler`: processes of programs."""

from __future__ import annotations

from .handlers import get_subprocess_handler
from .subprocess_handler import SubprocessHandler

__all__ = ["SubprocessHandler", "get_subprocess_handler"]
