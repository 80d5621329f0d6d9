"""Start of processes that run one function, and the errors of those that fail."""

from __future__ import annotations

import logging
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

from ..runtime import process_control

ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"

log = logging.getLogger(__name__)

__all__ = ["ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "SpawnContext",
           "spawn", "start_processes"]


# ----- errors ------------------------------------------------------------------------------


class ProcessException(Exception):
    """A process failed.

    Attributes:
        error_index: the number of the process.
        error_pid: its process id.

    >>> from flambeau.multiprocessing.spawn import ProcessException
    >>> ProcessException("failed", 0, 4711).error_pid
    4711
    """

    __slots__ = ["error_index", "error_pid"]

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """A process raised an exception; the message contains its traceback.

    >>> from flambeau.multiprocessing import ProcessRaisedException
    >>> ProcessRaisedException("raised", 1, 4711).error_index
    1
    """


class ProcessExitedException(ProcessException):
    """A process ended by a signal or with an exit code other than 0.

    Attributes:
        exit_code: the exit code; negative for a signal.
        signal_name: the signal; None for an exit code.

    >>> from flambeau.multiprocessing import ProcessExitedException
    >>> ProcessExitedException("exited", 0, 4711, 3).exit_code
    3
    """

    __slots__ = ["exit_code"]

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int,
                 signal_name: str | None = None) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


# ----- in the child ------------------------------------------------------------------------


def _wrap(fn: Callable[..., Any], i: int, args: tuple[Any, ...], error_file: str) -> None:
    """Run the function in the child; an exception's traceback is written to `error_file`."""
    process_control.set_parent_death_signal(signal.SIGINT)  # processes that are no daemons end with their parent too
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        import traceback

        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


# ----- in the parent -----------------------------------------------------------------------


class ProcessContext:
    """Processes that `start_processes` started.

    Args:
        processes: the started processes.
        error_files: for each, the file that its traceback is written to.
    """

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.error_files, self.processes = error_files, processes
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The process ids."""
        return [int(process.pid) for process in self.processes]

    def _join_procs_with_timeout(self, timeout: float) -> None:
        end = time.monotonic() + timeout
        for process in self.processes:
            process.join(max(0, end - time.monotonic()))

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until a process ends; if it failed, end the others and raise its error.

        Args:
            timeout: seconds to wait.
            grace_period: seconds that the others get to end by themselves, and again after SIGTERM.

        Returns:
            Whether all processes have ended.

        Raises:
            ProcessRaisedException: a process raised an exception.
            ProcessExitedException: a process ended by a signal or with an exit code.
        """
        if not self.sentinels:
            return True
        failed = None
        for sentinel in multiprocessing.connection.wait(self.sentinels.keys(), timeout=timeout):
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        self._end_all(grace_period)
        raise self._error(failed)

    def _end_all(self, grace_period: float | None) -> None:
        if grace_period is not None:
            self._join_procs_with_timeout(grace_period)
        for process in self.processes:
            if process.is_alive():
                log.warning("Terminating process %s via signal SIGTERM", process.pid)
                process.terminate()
        self._join_procs_with_timeout(30 if grace_period is None else grace_period)
        for process in self.processes:
            if process.is_alive():
                log.warning("Unable to shutdown process %s via SIGTERM , forcefully exiting via SIGKILL", process.pid)
                process.kill()
            process.join()

    def _error(self, index: int) -> ProcessException:
        process, file_name = self.processes[index], self.error_files[index]
        if os.access(file_name, os.R_OK):
            with open(file_name, "rb") as file:
                trace = pickle.load(file)
            os.unlink(file_name)
            return ProcessRaisedException(f"\n\n-- Process {index} terminated with the following error:\n{trace}",
                                          index, process.pid)
        code = process.exitcode
        if code >= 0:
            return ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"<Unknown signal {-code}>"
        return ProcessExitedException(f"process {index} terminated with signal {name}", index, process.pid, code, name)


class SpawnContext(ProcessContext):
    """The former name of `ProcessContext`; deprecated."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        warnings.warn("SpawnContext is renamed to ProcessContext since 1.4 release.", stacklevel=2)
        super().__init__(processes, error_files)


def _new_file_name() -> str:
    """The name of a file that does not exist; it exists after an exception."""
    handle, name = tempfile.mkstemp(prefix="pytorch-errorfile-", suffix=".pickle")
    os.close(handle)
    os.unlink(name)
    return name


def start_processes(fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True,
                    daemon: bool = False, start_method: str = "spawn") -> ProcessContext | None:
    """Run `fn(i, *args)` in process `i` of `nprocs`.

    Args:
        fn: the function; with "spawn" and "forkserver" it is at the top level of a module.
        args: its arguments after the process's number.
        nprocs: the number of processes.
        join: whether to wait for all processes.
        daemon: whether they end with this process.
        start_method: "fork", "spawn" or "forkserver".

    Returns:
        None, or the processes if `join` is false.

    Raises:
        ProcessRaisedException, ProcessExitedException: with `join`, as `ProcessContext.join`.

    >>> import flambeau.multiprocessing as mp
    >>> results = mp.SimpleQueue()
    >>> mp.start_processes(lambda i, factor: results.put(factor * (i + 1)), (10,), 1, start_method="fork")
    >>> results.get()
    10
    """
    context: Any = multiprocessing.get_context(start_method)
    error_files = [_new_file_name() for _ in range(nprocs)]
    processes = [context.Process(target=_wrap, args=(fn, i, args, error_files[i]), daemon=daemon)
                 for i in range(nprocs)]
    if start_method == "forkserver" and os.environ.get(ENV_VAR_PARALLEL_START, "0") == "1" and nprocs:
        from concurrent.futures import ThreadPoolExecutor

        log.info("Starting processes in parallel.")
        with ThreadPoolExecutor(max_workers=nprocs) as executor:
            list(executor.map(lambda process: process.start(), processes))
    else:
        for process in processes:
            process.start()
    started = ProcessContext(processes, error_files)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True,
          daemon: bool = False, start_method: str = "spawn") -> ProcessContext | None:
    """Run `fn(i, *args)` in process `i` of `nprocs`, each a new interpreter (`start_processes` with "spawn").

    Args:
        fn: a function at the top level of a module.
        args: its arguments after the process's number.
        nprocs: the number of processes.
        join: whether to wait for all processes.
        daemon: whether they end with this process.
        start_method: deprecated; the method is "spawn".

    Returns:
        None, or the processes if `join` is false.

    Raises:
        ProcessRaisedException, ProcessExitedException: with `join`, as `ProcessContext.join`.

    >>> import flambeau.multiprocessing as mp
    >>> mp.spawn(print, nprocs=0)
    """
    if start_method != "spawn":
        warnings.warn(f"This method only supports start_method=spawn (got: {start_method}).\n"
                      "To use a different start_method use:\n\t\t torch.multiprocessing.start_processes(...)",
                      FutureWarning, stacklevel=2)
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
