"""Launches of a fake device that are recorded instead of run, and replayed: what a CUDA graph is on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .array import DeviceArray


class CapturedLaunch:
    """One launch.

    Attributes:
        name, reads, writes, kernel: as for `Runtime.launch`.
        adopted: the arrays that its results are on the device; None for views of operands.
    """

    def __init__(self, name: str, reads: Sequence[DeviceArray], writes: Sequence[DeviceArray],
                 kernel: Callable[[], Any], operand: Callable[[DeviceArray], np.ndarray]) -> None:
        self.name, self.reads, self.writes, self.kernel, self._operand = name, reads, writes, kernel, operand
        self._targets: list[DeviceArray | None] = []

    @property
    def adopted(self) -> list[DeviceArray]:
        """The new arrays."""
        return [each for each in self._targets if each is not None]

    def adopt(self, targets: Sequence[DeviceArray], operands: set[int]) -> None:
        """Note the arrays of the results."""
        self._targets += [None if id(each.memory) in operands else each for each in targets]

    def run(self) -> None:
        """Run the kernel again, on what memory holds now."""
        results = self.kernel()
        if not self._targets:
            return
        arrays = [each for each in (results if isinstance(results, (list, tuple)) else [results])
                  if isinstance(getattr(each, "_array", each), np.ndarray)]
        for target, result in zip(self._targets, arrays, strict=True):
            if target is not None:
                np.copyto(self._operand(target), getattr(result, "_array", result))


class CapturedLaunches:
    """The launches of a stream, in order.

    Args:
        operand: gives the elements of an array of the device.

    Attributes:
        valid: whether nothing has happened that must not while a stream is captured.
    """

    def __init__(self, operand: Callable[[DeviceArray], np.ndarray]) -> None:
        self.valid = True
        self.launches: list[CapturedLaunch] = []
        self._operand = operand

    def record(self, name: str, reads: Sequence[DeviceArray], writes: Sequence[DeviceArray], kernel: Callable[[], Any]
               ) -> Any:
        """Record a launch; its results, which tell their shapes. What it writes to operands is undone."""
        before = [np.copy(self._operand(each)) for each in writes]
        result = kernel()
        for each, elements in zip(writes, before, strict=True):
            self._operand(each)[...] = elements
        self.launches.append(CapturedLaunch(name, reads, writes, kernel, self._operand))
        return result

    def adopt(self, targets: Sequence[DeviceArray], operands: set[int]) -> None:
        """Note the arrays of the results of the last launch.

        Args:
            operands: identities of the operands' memory, which views among the results have.
        """
        if self.launches:
            self.launches[-1].adopt(targets, operands)

    def results(self) -> Iterator[DeviceArray]:
        """The arrays that the launches make."""
        for each in self.launches:
            yield from each.adopted


__all__ = ["CapturedLaunch", "CapturedLaunches"]
