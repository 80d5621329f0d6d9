"""Where the output of processes goes."""

from __future__ import annotations

from enum import IntFlag
from typing import Any

__all__ = ["DefaultLogsSpecs", "LogsSpecs", "Std"]


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
            ValueError: it is neither.
        """
        try:
            if ":" not in vm:
                return cls(int(vm))
            return {int(rank): cls(int(streams)) for rank, streams in (pair.split(":") for pair in vm.split(","))}
        except ValueError:
            raise ValueError(f"vm: <{vm}> does not match: <streams>, or <local rank>:<streams>,<local rank>:<streams> "
                             "with streams 0 to 3") from None


def _text(streams: Any) -> str:
    """Streams as `torchrun`'s options name them."""
    if isinstance(streams, dict):
        return ",".join(f"{rank}:{int(each)}" for rank, each in streams.items())
    return str(int(streams))


class LogsSpecs:
    """Where the output of processes goes.

    Args:
        log_dir: the folder of files.
        redirects: the streams that go to files in place of the console; a dict has those of each local rank.
        tee: the streams that go to files and the console.
        local_ranks_filter: the processes whose output the console shows; all if None.
    """

    def __init__(self, log_dir: str | None = None, redirects: Any = Std.NONE, tee: Any = Std.NONE,
                 local_ranks_filter: set[int] | None = None) -> None:
        self.root_log_dir, self.redirects, self.tee = log_dir, _text(redirects), _text(tee)
        self.local_ranks_filter = ",".join(map(str, sorted(local_ranks_filter or ())))


class DefaultLogsSpecs(LogsSpecs):
    """Where the output of processes goes: `LogsSpecs` with its defaults."""
