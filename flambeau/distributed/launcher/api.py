"""`elastic_launch`: a function, or a program, in several processes that are watched and restarted as by `torchrun`."""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...runtime import process_control
from ..elastic.multiprocessing.errors import record
from ..elastic.multiprocessing.logs import DefaultLogsSpecs
from ..run import Agent, launch, parse_args

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]

_BACKENDS = ("static", "c10d")


@dataclass
class LaunchConfig:
    """How `elastic_launch` starts processes; `torchrun` has the same options.

    Args:
        min_nodes, max_nodes: the number of machines; the least is taken.
        nproc_per_node: the number of processes on each.
        logs_specs: where output goes; to the console if None.
        run_id: the job's name.
        role: the processes' name in logs.
        rdzv_endpoint, rdzv_backend: where machines meet: "static" or "c10d".
        rdzv_configs: of a static rendezvous, {"rank": number of this machine}.
        rdzv_timeout: seconds that `rdzv_configs` gets as its "timeout", if not -1.
        max_restarts: how often all processes are started again after one has failed.
        monitor_interval: seconds between looks at the processes.
        start_method: "spawn", "fork" or "forkserver", for functions.
        local_addr, log_line_prefix_template, metrics_cfg, event_log_handler, numa_options, duplicate_stdout_filters,
            duplicate_stderr_filters: without effect.
        signals_to_handle: signals that end the processes, too.
        virtual_local_rank: whether LOCAL_RANK is 0 in all of them.
        shutdown_timeout: seconds that processes get to end after SIGTERM.

    Raises:
        ValueError: a negative `shutdown_timeout` (PyTorch's text).
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: Any = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: Any = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False
    shutdown_timeout: int | None = None

    def __post_init__(self) -> None:
        if self.rdzv_timeout != -1:
            self.rdzv_configs["timeout"] = self.rdzv_timeout
        self.rdzv_configs.setdefault("timeout", 900)
        if self.logs_specs is None:
            self.logs_specs = DefaultLogsSpecs()
        if self.shutdown_timeout is None:
            self.shutdown_timeout = int(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30"))
        elif self.shutdown_timeout < 0:
            raise ValueError(f"shutdown_timeout must be non-negative, got {self.shutdown_timeout}")


class elastic_launch:
    """Runs a function or a program in several processes, and returns what the function returned in each.

    Args:
        config: how.
        entrypoint: a function, or a program's path.
        health_check_server: without effect.

    >>> import os
    >>> from flambeau.distributed.launcher.api import LaunchConfig, elastic_launch
    >>> config = LaunchConfig(1, 1, 2, rdzv_backend="c10d", start_method="fork", monitor_interval=0.01)
    >>> elastic_launch(config, lambda factor: factor * int(os.environ["RANK"]))(10)
    {0: 0, 1: 10}
    """

    def __init__(self, config: LaunchConfig, entrypoint: Callable[..., Any] | str | None,
                 health_check_server: Any = None) -> None:
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args: Any) -> dict[int, Any]:
        return launch_agent(self._config, self._entrypoint, list(args))


def _options(config: LaunchConfig, program: str, args: list[Any]) -> argparse.Namespace:
    if config.rdzv_backend not in _BACKENDS:
        raise ValueError(f"rdzv_backend={config.rdzv_backend!r} is left out: use one of {', '.join(_BACKENDS)}")
    options = parse_args(["--no-python", program, *map(str, args)])
    logs = config.logs_specs
    chosen = {
        "nnodes": f"{config.min_nodes}:{config.max_nodes}", "nproc_per_node": str(config.nproc_per_node),
        "rdzv_backend": config.rdzv_backend, "rdzv_endpoint": config.rdzv_endpoint, "rdzv_id": config.run_id or "none",
        "node_rank": int(config.rdzv_configs.get("rank", 0)), "max_restarts": config.max_restarts, "role": config.role,
        "monitor_interval": config.monitor_interval, "signals_to_handle": config.signals_to_handle,
        "virtual_local_rank": config.virtual_local_rank, "shutdown_timeout": config.shutdown_timeout,
        "standalone": config.max_nodes == 1 and not config.rdzv_endpoint, "log_dir": logs.root_log_dir,
        **logs.options()}
    for name, value in chosen.items():
        setattr(options, name, value)
    return options


def _call(entrypoint: Callable[..., Any], args: tuple[Any, ...], variables: dict[str, str], result: str,
          streams: dict[int, str]) -> None:
    """In the process of a function: call it, and write what it returns to a file."""
    with contextlib.suppress(PermissionError):  # the launcher may have done so
        os.setpgid(0, 0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)  # those of the launcher, where it was forked
    process_control.set_parent_death_signal(signal.SIGTERM)
    os.environ.update(variables)
    for descriptor, name in streams.items():
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, descriptor)
        os.close(file)
    returned = record(entrypoint)(*args)
    with contextlib.suppress(AttributeError, ValueError):
        sys.stdout.flush()
    Path(result).write_bytes(pickle.dumps(returned))


class _FunctionProcess:
    """A process of `multiprocessing` with the interface of one of `subprocess`."""

    stdout = stderr = None

    def __init__(self, process: Any) -> None:
        self._process = process
        process.start()
        self.pid: int = process.pid
        with contextlib.suppress(OSError):  # a spawned process does so itself
            os.setpgid(self.pid, self.pid)

    @property
    def returncode(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        self._process.join(timeout)
        code = self.returncode
        if code is None:
            raise subprocess.TimeoutExpired(str(self._process), timeout or 0)
        return code


class _FunctionAgent(Agent):
    """Starts a function in each process of this machine."""

    def __init__(self, options: argparse.Namespace, config: LaunchConfig, entrypoint: Callable[..., Any],
                 args: tuple[Any, ...]) -> None:
        if options.tee != "0":
            raise NotImplementedError("output of functions goes to files or to the console, not to both: use "
                                      "`redirects` in place of `tee`")
        super().__init__(options)
        self._context: Any = multiprocessing.get_context(config.start_method)
        self._entrypoint, self._arguments = entrypoint, args

    def _start_process(self, local_rank: int, variables: dict[str, str], options: dict[str, Any]) -> Any:
        streams = {}
        for descriptor, name in ((1, "stdout"), (2, "stderr")):
            if name in options:
                streams[descriptor] = options[name].name if hasattr(options[name], "name") else os.devnull
        arguments = self._entrypoint, self._arguments, variables, self._result_file(local_rank), streams
        return _FunctionProcess(self._context.Process(target=_call, args=arguments))

    def _result_file(self, local_rank: int) -> str:
        return str(Path(self.scratch, f"result{local_rank}.pickle"))

    def results(self) -> dict[int, Any]:
        return {worker.rank: pickle.loads(Path(self._result_file(worker.local_rank)).read_bytes())
                for worker in self.workers}


def launch_agent(config: LaunchConfig, entrypoint: Callable[..., Any] | str | None, args: list[Any],
                 health_check_server: Any = None) -> dict[int, Any]:
    """Run a function or a program in several processes on this machine.

    Args:
        config: how.
        entrypoint: a function, or a program's path.
        args: its arguments.
        health_check_server: without effect.

    Returns:
        The rank of each process and what the function returned there; None for programs.

    Raises:
        ChildFailedError: processes have failed, more often than they may be restarted.
        ValueError: a rendezvous that is left out.
    """
    if callable(entrypoint):
        options = _options(config, getattr(entrypoint, "__name__", type(entrypoint).__name__), [])
        return launch(_FunctionAgent(options, config, entrypoint, tuple(args)))
    return launch(Agent(_options(config, entrypoint or "", args)))
