"""Variables of the environment, and what stands for the rank in a command."""

from __future__ import annotations

import os
from string import Template
from typing import Any

from .distributed import get_socket_with_port

__all__ = ["get_env_variable_or_raise", "get_socket_with_port", "macros"]


def get_env_variable_or_raise(env_name: str) -> str:
    """The value of a variable.

    Args:
        env_name: its name.

    Raises:
        ValueError: it is not set (PyTorch's text).

    >>> from flambeau.distributed.elastic.utils import get_env_variable_or_raise
    >>> get_env_variable_or_raise("NOT_SET")
    Traceback (most recent call last):
    ValueError: Environment variable NOT_SET expected, but not set
    """
    value = os.environ.get(env_name)
    if value is None:
        raise ValueError(f"Environment variable {env_name} expected, but not set")
    return value


class macros:
    """What `${local_rank}` in a command's arguments becomes.

    >>> from flambeau.distributed.elastic.utils import macros
    >>> macros.substitute(["--rank", macros.local_rank, 3], "1")
    ['--rank', '1', 3]
    """

    local_rank = "${local_rank}"

    @staticmethod
    def substitute(args: list[Any], local_rank: str) -> list[Any]:
        """The arguments of a process.

        Args:
            args: those of all.
            local_rank: the process's number on its machine.
        """
        return [Template(each).safe_substitute(local_rank=local_rank) if isinstance(each, str) else each
                for each in args]
