"""Times and buckets of the passes of a `Reducer`, sampled: what `_get_ddp_logging_data` has of them."""

from __future__ import annotations

from typing import Any

_FIRST = 10  # passes that are all sampled
#: statistic -> the marks from which to which it lasts
_LASTING = {"forward_compute_time": ("forward_start", "compute_start"),
            "backward_compute_time": ("compute_start", "compute_end"),
            "backward_comm_time": ("comm_start", "comm_end")}
#: PyTorch's names of the marks
_MARKS = {"forward_compute_time_start": "forward_start", "backward_compute_time_start": "compute_start",
          "backward_compute_time_end": "compute_end", "backward_comm_time_start": "comm_start",
          "backward_comm_time_end": "comm_end"}


class PassMarks:
    """When the parts of a pass began and ended, in nanoseconds; 0: not yet.

    Attributes:
        forward_start: the forward pass began.
        compute_start, compute_end: the first gradient was there, and all were.
        comm_start, comm_end: the first reduction began, and the last ended.
    """

    __slots__ = ("comm_end", "comm_start", "compute_end", "compute_start", "forward_start")

    def __init__(self) -> None:
        self.forward_start = self.compute_start = self.compute_end = self.comm_start = self.comm_end = 0


class PassStatistics:
    """Statistics of the passes that were sampled: the first ten, and each that `rate` divides.

    Attributes:
        rate: how many passes there are to a sample.
        sampled: PyTorch's names -> values, of the last sample; times are in nanoseconds.
    """

    def __init__(self) -> None:
        self.rate = 100
        self.sampled: dict[str, Any] = {}
        self._totals: dict[str, int] = {}
        self._count = 0

    def wanted(self, passes: int) -> bool:
        """Whether the pass of this number, counted from 1, is sampled."""
        return passes > 0 and (passes <= _FIRST or not passes % self.rate)

    def sample(self, marks: PassMarks, passes: int, **described: Any) -> None:
        """Add a pass.

        Args:
            marks: of the pass.
            passes: its number.
            described: other statistics of it.
        """
        times = {name: max(0, getattr(marks, end) - getattr(marks, start)) for name, (start, end) in _LASTING.items()}
        times["backward_compute_comm_overlap_time"] = max(
            0, min(marks.compute_end, marks.comm_end) - marks.comm_start) if marks.comm_start else 0
        self._count += 1
        for name, value in times.items():
            self._totals[name] = self._totals.get(name, 0) + value
        averages = {f"avg_{name}": total // self._count for name, total in self._totals.items()}
        starts = {name: getattr(marks, mark) for name, mark in _MARKS.items()}
        self.sampled = {"iteration": passes, **described, **times, **averages, **starts}


__all__ = ["PassMarks", "PassStatistics"]
