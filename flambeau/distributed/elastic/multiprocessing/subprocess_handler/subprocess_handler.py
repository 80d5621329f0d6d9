"""One process of a program, with its files of output."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import Any

__all__ = ["SubprocessHandler"]


class SubprocessHandler:
    """Starts a program, as the leader of a group of processes.

    Args:
        entrypoint: its path.
        args: its arguments.
        env: its variables, beside those of this process.
        stdout, stderr: files of its output; the console if empty.
        local_rank_id: its number.
        numa_options: without effect.

    >>> import signal
    >>> from flambeau.distributed.elastic.multiprocessing.subprocess_handler import SubprocessHandler
    >>> handler = SubprocessHandler("sleep", (60,), {}, "", "", 0)
    >>> handler.close()
    >>> -handler.proc.wait() == signal.SIGTERM
    True
    """

    def __init__(self, entrypoint: str, args: tuple[Any, ...], env: dict[str, str], stdout: str | None,
                 stderr: str | None, local_rank_id: int, numa_options: Any = None) -> None:
        with contextlib.ExitStack() as files:  # the process has its own descriptors
            streams = [files.enter_context(open(name, "wb")) if name else None for name in (stdout, stderr)]
            self.local_rank_id = local_rank_id
            self.proc = subprocess.Popen([entrypoint, *map(str, args)], env={**os.environ, **env}, stdout=streams[0],
                                         stderr=streams[1], start_new_session=True)

    def close(self, death_sig: signal.Signals | None = None) -> None:
        """Send a signal to the process and those that it has started.

        Args:
            death_sig: the signal; default: SIGTERM.
        """
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.proc.pid, death_sig or signal.SIGTERM)
