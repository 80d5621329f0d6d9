"""An iterator over several epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

__all__ = ["CyclingIterator"]

_T = TypeVar("_T")


class CyclingIterator(Iterator[_T], Generic[_T]):
    """The elements of all epochs, one after another.

    Args:
        n: the number of epochs.
        generator_fn: epoch -> its elements.
        start_epoch: the first one.

    >>> from flambeau.distributed.elastic.utils.data import CyclingIterator
    >>> list(CyclingIterator(2, lambda epoch: iter([epoch, epoch])))
    [0, 0, 1, 1]
    """

    def __init__(self, n: int, generator_fn: Callable[[int], Iterator[_T]], start_epoch: int = 0) -> None:
        self._count, self._epoch, self._generator = n, start_epoch, generator_fn
        self._elements = generator_fn(start_epoch)

    def __iter__(self) -> CyclingIterator[_T]:
        return self

    def __next__(self) -> _T:
        while True:
            try:
                return next(self._elements)
            except StopIteration:
                if self._epoch >= self._count - 1:
                    raise
                self._epoch += 1
                self._elements = self._generator(self._epoch)
