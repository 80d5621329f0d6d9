"""What starts the processes of a program."""

from __future__ import annotations

from typing import Any

from .subprocess_handler import SubprocessHandler

__all__ = ["get_subprocess_handler"]


def get_subprocess_handler(entrypoint: str, args: tuple[Any, ...], env: dict[str, str], stdout: str, stderr: str,
                           local_rank_id: int, numa_options: Any = None) -> SubprocessHandler:
    """Start a program.

    Args:
        entrypoint, args, env, stdout, stderr, local_rank_id, numa_options: as for `SubprocessHandler`.

    >>> from flambeau.distributed.elastic.multiprocessing.subprocess_handler import get_subprocess_handler
    >>> get_subprocess_handler("true", (), {}, "", "", 0).proc.wait()
    0
    """
    return SubprocessHandler(entrypoint, args, env, stdout, stderr, local_rank_id, numa_options)
