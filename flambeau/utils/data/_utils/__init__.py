"""What loaders consist of: collation, fetching, worker processes and their supervision."""

from __future__ import annotations

import atexit
import sys

from ....runtime.exception_wrapper import ExceptionWrapper

#: NumPy is always there
HAS_NUMPY = True

IS_WINDOWS = sys.platform == "win32"

#: seconds between two checks whether the process at the other end of a queue is alive
MP_STATUS_CHECK_INTERVAL = 5.0

#: whether Python is shutting down, when queues and processes are not touched any more
python_exit_status = False


def _set_python_exit_flag() -> None:
    global python_exit_status
    python_exit_status = True


atexit.register(_set_python_exit_flag)

from . import collate, fetch, pin_memory, signal_handling, worker  # noqa: E402  they use the names above

__all__ = ["ExceptionWrapper", "collate", "fetch", "pin_memory", "signal_handling", "worker"]
