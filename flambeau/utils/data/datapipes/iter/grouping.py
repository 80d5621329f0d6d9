"""Batches and groups of samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import DataChunk, IterDataPipe
from ..lengths import batch_count, length_of
from ..utils.common import _check_unpickable_fn

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe[DataChunk[Any]]):
    """Batches of consecutive samples (`batch`).

    Args:
        datapipe: the source.
        batch_size: the length of a batch.
        drop_last: whether a shorter last batch is dropped.
        wrapper_class: the type of a batch.

    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper(range(3)).batch(2))
    [[0, 1], [2]]
    """

    def __init__(self, datapipe: IterDataPipe[Any], batch_size: int, drop_last: bool = False,
                 wrapper_class: Any = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __iter__(self) -> Iterator[DataChunk[Any]]:
        batch: list[Any] = []
        for sample in self.datapipe:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        return batch_count(length_of(self.datapipe, self), self.batch_size, self.drop_last)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe[Any]):
    """The samples of batches, or of batches of batches (`unbatch`).

    Args:
        datapipe: the source.
        unbatch_level: how many levels are removed; -1: all.

    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper([[[1, 2], [3]]]).unbatch(unbatch_level=-1))
    [1, 2, 3]
    """

    def __init__(self, datapipe: IterDataPipe[Any], unbatch_level: int = 1) -> None:
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self) -> Iterator[Any]:
        for element in self.datapipe:
            yield from self._elements(element, self.unbatch_level)

    def _elements(self, element: Any, level: int) -> Iterator[Any]:
        if level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if level == 0 or (level == -1 and not isinstance(element, list)):
            yield element
        elif isinstance(element, list):
            for each in element:
                yield from self._elements(each, level if level == -1 else level - 1)
        else:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe[DataChunk[Any]]):
    """Batches of samples with the same key (`groupby`).

    Args:
        datapipe: the source.
        group_key_fn: a function that returns the key.
        keep_key: whether pairs of key and batch are yielded.
        buffer_size: the number of samples that are kept; when it is reached, the largest group is yielded.
        group_size: the length at which a group is yielded.
        guaranteed_group_size: the least length of a group that is yielded because the buffer is full.
        drop_remaining: whether shorter groups are dropped then; if not, they are an error.

    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper(["a", "bb", "c"]).groupby(len))
    [['a', 'c'], ['bb']]
    """

    def __init__(self, datapipe: IterDataPipe[Any], group_key_fn: Callable[[Any], Any], *, keep_key: bool = False,
                 buffer_size: int = 10000, group_size: int | None = None, guaranteed_group_size: int | None = None,
                 drop_remaining: bool = False) -> None:
        _check_unpickable_fn(group_key_fn)
        self.datapipe, self.group_key_fn, self.keep_key = datapipe, group_key_fn, keep_key
        self.max_buffer_size, self.group_size, self.guaranteed_group_size = buffer_size, group_size, None
        if group_size is not None and buffer_size is not None:
            if not 0 < group_size <= buffer_size:
                raise AssertionError("group_size must be > 0 and <= buffer_size")
            self.guaranteed_group_size = group_size
        if guaranteed_group_size is not None:
            if group_size is None or not 0 < guaranteed_group_size <= group_size:
                raise AssertionError("guaranteed_group_size must be > 0 and <= group_size and group_size must be set")
            self.guaranteed_group_size = guaranteed_group_size
        self.drop_remaining, self.wrapper_class = drop_remaining, DataChunk
        self._clear()

    def _clear(self) -> None:
        self.buffer_elements: defaultdict[Any, list[Any]] = defaultdict(list)
        self.curr_buffer_size = 0

    def _take(self, key: Any) -> list[Any]:
        samples = self.buffer_elements.pop(key)
        self.curr_buffer_size -= len(samples)
        return samples

    def _remove_biggest_key(self) -> list[Any] | None:
        key = max(self.buffer_elements, key=lambda each: len(self.buffer_elements[each]))
        size = len(self.buffer_elements[key])
        if self.guaranteed_group_size is not None and size < self.guaranteed_group_size:
            if not self.drop_remaining:
                raise RuntimeError("Failed to group items", str(self.buffer_elements[key]))
            self._take(key)
            return None
        return self._take(key)

    def __iter__(self) -> Iterator[Any]:
        def group(key: Any, samples: list[Any]) -> Any:
            chunk = self.wrapper_class(samples)
            return (key, chunk) if self.keep_key else chunk

        for sample in self.datapipe:
            key = self.group_key_fn(sample)
            self.buffer_elements[key].append(sample)
            self.curr_buffer_size += 1
            if self.group_size is not None and self.group_size == len(self.buffer_elements[key]):
                yield group(key, self._take(key))
            if self.curr_buffer_size == self.max_buffer_size:
                biggest = self._remove_biggest_key()
                if biggest is not None:
                    yield group(key, biggest)
        for key in tuple(self.buffer_elements):
            yield group(key, self._take(key))

    def reset(self) -> None:
        """Empty the buffer."""
        self._clear()

    def __getstate__(self) -> Any:
        state = (self.datapipe, self.group_key_fn, self.keep_key, self.max_buffer_size, self.group_size,
                 self.guaranteed_group_size, self.drop_remaining, self.wrapper_class, self._valid_iterator_id,
                 self._number_of_samples_yielded)
        return state if IterDataPipe.getstate_hook is None else IterDataPipe.getstate_hook(state)

    def __setstate__(self, state: Any) -> None:
        (self.datapipe, self.group_key_fn, self.keep_key, self.max_buffer_size, self.group_size,
         self.guaranteed_group_size, self.drop_remaining, self.wrapper_class, self._valid_iterator_id,
         self._number_of_samples_yielded) = state
        self._clear()
