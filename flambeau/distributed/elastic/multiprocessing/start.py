"""Starts processes of a function or a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .contexts import MultiprocessContext, PContext, SubprocessContext, _validate_full_rank
from .logs import LogsSpecs

__all__ = ["start_processes"]


def start_processes(name: str, entrypoint: Callable[..., Any] | str, args: dict[int, tuple[Any, ...]],
                    envs: dict[int, dict[str, str]], logs_specs: LogsSpecs,
                    log_line_prefixes: dict[int, str] | None = None, start_method: str = "spawn",
                    numa_options: Any = None, duplicate_stdout_filters: list[str] | None = None,
                    duplicate_stderr_filters: list[str] | None = None) -> PContext:
    """Start a function or a program in several processes.

    Args:
        name: of all of them, in their output.
        entrypoint: a function, or a program's path.
        args: local rank -> its arguments.
        envs: local rank -> its variables, beside those of this process.
        logs_specs: where output goes.
        log_line_prefixes: local rank -> what is written before its lines.
        start_method: "spawn", "fork" or "forkserver", for functions.
        numa_options: without effect.
        duplicate_stdout_filters, duplicate_stderr_filters: lines with one of these texts go to a file of all, too.

    Raises:
        RuntimeError: `args` and `envs` are not for the same processes (PyTorch's text).

    >>> import tempfile
    >>> from flambeau.distributed.elastic.multiprocessing import DefaultLogsSpecs, start_processes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     logs = DefaultLogsSpecs(folder)
    ...     context = start_processes("add", sum, {0: ([1, 2],), 1: ([3, 4],)}, {0: {}, 1: {}}, logs,
    ...                               start_method="fork")
    ...     context.wait(period=0.01).return_values
    {0: 3, 1: 7}
    """
    _validate_full_rank(args, len(args), "args")
    _validate_full_rank(envs, len(args), "envs")
    common: dict[str, Any] = {"logs_specs": logs_specs, "log_line_prefixes": log_line_prefixes,
                              "numa_options": numa_options, "duplicate_stdout_filters": duplicate_stdout_filters,
                              "duplicate_stderr_filters": duplicate_stderr_filters}
    context: PContext
    if isinstance(entrypoint, str):
        context = SubprocessContext(name, entrypoint, args, envs, **common)
    else:
        context = MultiprocessContext(name, entrypoint, args, envs, start_method, **common)
    try:
        context.start()
    except Exception:
        context.close()
        raise
    return context
