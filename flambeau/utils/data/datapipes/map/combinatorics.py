"""Maps in random order, as streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..datapipe import IterDataPipe, MapDataPipe
from ..random_state import Shuffling

__all__ = ["ShufflerIterDataPipe"]


class ShufflerIterDataPipe(Shuffling, IterDataPipe[Any]):
    """The samples of a map in random order, as a stream (`shuffle`).

    Args:
        datapipe: the source.
        indices: its indices; 0, 1, 2, ... by default.

    >>> from flambeau.utils.data.datapipes.map import SequenceWrapper
    >>> sorted(SequenceWrapper([1, 2, 3]).shuffle())
    [1, 2, 3]
    """

    def __init__(self, datapipe: MapDataPipe[Any], *, indices: list[Any] | None = None) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices
        self._init_shuffling()
        self._shuffled_indices = self.indices

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            for index in self.indices:
                yield self.datapipe[index]
            return
        while self._shuffled_indices:
            yield self.datapipe[self._shuffled_indices.pop()]

    def reset(self) -> None:
        """Choose the order."""
        if self._enabled:
            self._begin_shuffling()
        else:
            self._rng.seed(self._seed)
            self._seed = None
        self._shuffled_indices = self._rng.sample(self.indices, len(self.indices))

    def __len__(self) -> int:
        return len(self.datapipe)

    def __getstate__(self) -> Any:
        state = (self.datapipe, self.indices, self._enabled, self._seed, self._rng.getstate(), self._shuffled_indices,
                 self._valid_iterator_id, self._number_of_samples_yielded)
        return state if IterDataPipe.getstate_hook is None else IterDataPipe.getstate_hook(state)

    def __setstate__(self, state: Any) -> None:
        (self.datapipe, self.indices, enabled, seed, generator, self._shuffled_indices, self._valid_iterator_id,
         self._number_of_samples_yielded) = state
        self._restore_shuffling(enabled, seed, generator)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
