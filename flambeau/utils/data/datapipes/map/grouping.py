"""Batches of samples."""

from __future__ import annotations

from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import DataChunk, MapDataPipe
from ..lengths import batch_count, length_of

__all__ = ["BatcherMapDataPipe"]


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe[DataChunk[Any]]):
    """Batches of consecutive samples (`batch`).

    Args:
        datapipe: a map with indices 0, 1, 2, ...
        batch_size: the length of a batch.
        drop_last: whether a shorter last batch is dropped.
        wrapper_class: the type of a batch.

    >>> from flambeau.utils.data.datapipes.map import SequenceWrapper
    >>> list(SequenceWrapper(range(3)).batch(2))
    [[0, 1], [2]]
    """

    def __init__(self, datapipe: MapDataPipe[Any], batch_size: int, drop_last: bool = False,
                 wrapper_class: Any = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __getitem__(self, index: int) -> Any:
        batch: list[Any] = []
        try:
            for i in range(index * self.batch_size, (index + 1) * self.batch_size):
                batch.append(self.datapipe[i])
        except IndexError as error:
            if self.drop_last or not batch:
                raise IndexError(f"Index {index} is out of bound.") from error
        return self.wrapper_class(batch)

    def __len__(self) -> int:
        return batch_count(length_of(self.datapipe, self), self.batch_size, self.drop_last)
