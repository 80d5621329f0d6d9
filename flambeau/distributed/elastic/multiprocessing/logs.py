"""Where the output of processes goes."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Any

__all__ = ["DefaultLogsSpecs", "LogsDest", "LogsSpecs", "Std", "to_map"]

_ONE, _MAP = r"^[0123]$", r"^(\d:[0123],)*(\d:[0123])$"


class Std(IntFlag):
    """Streams of a process.

    >>> from flambeau.distributed.elastic.multiprocessing import Std
    >>> Std.from_str("0:1,1:3")
    {0: <Std.OUT: 1>, 1: <Std.ALL: 3>}
    """

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = OUT | ERR

    @classmethod
    def from_str(cls, vm: str) -> Std | dict[int, Std]:
        """The streams of all processes, or of each, that a text names: "3" or "0:1,1:3".

        Args:
            vm: the text.

        Raises:
            ValueError: it is neither (PyTorch's text).
        """
        if re.match(_ONE, vm):
            return cls(int(vm))
        if re.match(_MAP, vm):
            return {int(rank): cls(int(streams)) for rank, streams in (pair.split(":") for pair in vm.split(","))}
        raise ValueError(f"{vm} does not match: <{_ONE}> or <{_MAP}>")


def to_map(val_or_map: Std | dict[int, Std], local_world_size: int) -> dict[int, Std]:
    """The streams of each process.

    Args:
        val_or_map: of all, or of some.
        local_world_size: the number of processes.

    >>> from flambeau.distributed.elastic.multiprocessing import Std, to_map
    >>> to_map({1: Std.OUT}, 2)
    {0: <Std.NONE: 0>, 1: <Std.OUT: 1>}
    """
    if isinstance(val_or_map, Std):
        return dict.fromkeys(range(local_world_size), val_or_map)
    return {rank: val_or_map.get(rank, Std.NONE) for rank in range(local_world_size)}


def _text(streams: Any) -> str:
    """Streams as `torchrun`'s options name them."""
    if isinstance(streams, dict):
        return ",".join(f"{rank}:{int(each)}" for rank, each in streams.items())
    return str(int(streams))


@dataclass
class LogsDest:
    """The files of each process; an empty name is the console.

    Args:
        stdouts, stderrs: number of a process -> the file of a stream.
        tee_stdouts, tee_stderrs: those that the console shows, too.
        error_files: where `record` writes errors.
        filtered_stdout, filtered_stderr: files of chosen lines of all processes.
    """

    stdouts: dict[int, str] = field(default_factory=dict)
    stderrs: dict[int, str] = field(default_factory=dict)
    tee_stdouts: dict[int, str] = field(default_factory=dict)
    tee_stderrs: dict[int, str] = field(default_factory=dict)
    error_files: dict[int, str] = field(default_factory=dict)
    filtered_stdout: str = ""
    filtered_stderr: str = ""


class LogsSpecs(ABC):
    """Where the output of processes goes.

    Args:
        log_dir: the folder of files.
        redirects: the streams that go to files in place of the console; a dict has those of each local rank.
        tee: the streams that go to files and the console.
        local_ranks_filter: the processes whose output the console shows; all if None.
    """

    def __init__(self, log_dir: str | None = None, redirects: Any = Std.NONE, tee: Any = Std.NONE,
                 local_ranks_filter: set[int] | None = None) -> None:
        self._root_log_dir, self._redirects, self._tee = log_dir, redirects, tee
        self._local_ranks_filter = local_ranks_filter

    @property
    @abstractmethod
    def root_log_dir(self) -> str | None:
        """The folder of files."""

    @abstractmethod
    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """Make the folders, and name the files.

        Args:
            envs: number of a process -> its variables; TORCHELASTIC_ERROR_FILE is added.
        """

    def options(self) -> dict[str, str]:
        """These as `torchrun`'s options `redirects`, `tee` and `local_ranks_filter`."""
        return {"redirects": _text(self._redirects), "tee": _text(self._tee),
                "local_ranks_filter": ",".join(map(str, sorted(self._local_ranks_filter or ())))}


class DefaultLogsSpecs(LogsSpecs):
    """A folder for each job, attempt and process: `<log_dir>/<run id>_.../attempt_<number>/<local rank>/stdout.log`.

    Args:
        log_dir, redirects, tee, local_ranks_filter: as for `LogsSpecs`; a folder in the system's one for temporary
            files if `log_dir` is None.

    Raises:
        NotADirectoryError: `log_dir` is a file.

    >>> from flambeau.distributed.elastic.multiprocessing import DefaultLogsSpecs
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     DefaultLogsSpecs(folder).reify({0: {}}).stdouts
    {0: ''}
    """

    def __init__(self, log_dir: str | None = None, redirects: Any = Std.NONE, tee: Any = Std.NONE,
                 local_ranks_filter: set[int] | None = None) -> None:
        if log_dir and os.path.isfile(log_dir):
            raise NotADirectoryError(f"log_dir: {log_dir} is a file")
        if log_dir and log_dir != os.devnull:
            os.makedirs(log_dir, exist_ok=True)
        super().__init__(log_dir, redirects, tee, local_ranks_filter)
        self._run_folder: str | None = None

    @property
    def root_log_dir(self) -> str | None:
        return self._root_log_dir

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        count = len(envs)
        if self._root_log_dir == os.devnull:
            for each in envs.values():
                each["TORCHELASTIC_ERROR_FILE"] = ""
            nothing, console = dict.fromkeys(range(count), os.devnull), dict.fromkeys(range(count), "")
            return LogsDest(console, dict(console), nothing, dict(nothing), dict(nothing), os.devnull, os.devnull)
        first = envs.get(0, {})
        if self._run_folder is None:
            if self._root_log_dir is None:
                self._root_log_dir = tempfile.mkdtemp(prefix="torchelastic_")
            run = first.get("TORCHELASTIC_RUN_ID", "test_run_id")
            self._run_folder = tempfile.mkdtemp(prefix=f"{run}_", dir=self._root_log_dir)
        folder = os.path.join(self._run_folder, f"attempt_{first.get('TORCHELASTIC_RESTART_COUNT', '0')}")
        shutil.rmtree(folder, ignore_errors=True)
        made = LogsDest(filtered_stdout=os.path.join(folder, "filtered_stdout.log"),
                        filtered_stderr=os.path.join(folder, "filtered_stderr.log"))
        redirects, tee = to_map(self._redirects, count), to_map(self._tee, count)
        for rank in range(count):
            own = os.path.join(folder, str(rank))
            os.makedirs(own)
            shown = not self._local_ranks_filter or rank in self._local_ranks_filter
            for stream, name, files, copied in ((Std.OUT, "stdout.log", made.stdouts, made.tee_stdouts),
                                                (Std.ERR, "stderr.log", made.stderrs, made.tee_stderrs)):
                in_file = (redirects[rank] | tee[rank]) & stream
                files[rank] = os.path.join(own, name) if in_file else "" if shown else os.devnull
                if tee[rank] & stream and shown:
                    copied[rank] = files[rank]
            made.error_files[rank] = envs[rank]["TORCHELASTIC_ERROR_FILE"] = os.path.join(own, "error.json")
        return made

    def __repr__(self) -> str:
        return (f"DefaultLogsSpecs(root_log_dir={self._root_log_dir}, redirects={self._redirects}, tee={self._tee}, "
                f"local_ranks_filter={self._local_ranks_filter})")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DefaultLogsSpecs) and repr(self) == repr(other)

    __hash__ = None  # type: ignore[assignment]
