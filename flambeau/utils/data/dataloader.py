"""The loader: batches of a dataset, in the order of a sampler, loaded by this process or by workers."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from multiprocessing.context import BaseContext
from typing import Any, Generic, TypeAlias, TypeVar

from ... import multiprocessing
from . import _utils
from ._utils import fetch
from ._utils.collate import default_collate, default_convert
from ._utils.worker import get_worker_info
from .datapipes.datapipe import (
    IterDataPipe,
    MapDataPipe,
    _IterDataPipeSerializationWrapper,
    _MapDataPipeSerializationWrapper,
)
from .dataset import IterableDataset
from .graph_settings import apply_shuffle_settings
from .iterators import (
    _BaseDataLoaderIter,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)
from .iterators import _sharding_worker_init_fn as _sharding_worker_init_fn  # of other loaders
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)

_collate_fn_t: TypeAlias = Callable[[list[_T]], Any]
_worker_init_fn_t: TypeAlias = Callable[[int], None]

#: what cannot change after construction
_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _DatasetKind:
    """The kinds of datasets."""

    Map = fetch.MAP
    Iterable = fetch.ITERABLE
    create_fetcher = staticmethod(fetch.create_fetcher)


class _InfiniteConstantSampler(Sampler[None]):
    """None, without end: the sampler of streams."""

    def __iter__(self) -> Any:
        while True:
            yield None


class DataLoader(Generic[_T_co]):
    """An iterable of batches of a dataset.

    The base seed of workers is drawn from `generator` when the iteration begins. Worker `i` seeds `random` and the
    default generator with the base seed plus `i`.

    Args:
        dataset: a dataset by index, or a stream (`IterableDataset`).
        batch_size: samples per batch; None: no batches, every sample is converted by `collate_fn`.
        shuffle: whether the order is random.
        sampler: an iterable of indices, instead of `shuffle`.
        batch_sampler: an iterable of lists of indices, instead of `batch_size`, `shuffle`, `sampler`, `drop_last`.
        num_workers: the number of worker processes; 0: this process loads.
        collate_fn: a function of a list of samples; `default_collate`, or `default_convert` without batches.
        pin_memory: accepted; it warns, since memory is pinned for accelerators only.
        drop_last: whether a shorter last batch is dropped.
        timeout: seconds to wait for a batch of workers; 0: any time.
        worker_init_fn: a function of the worker's number, called in each worker after seeding.
        multiprocessing_context: how workers are started: "fork", "spawn", "forkserver" or a context.
        generator: the random number generator of `shuffle` and of the base seed.
        prefetch_factor: batches that a worker loads ahead; 2 by default.
        persistent_workers: whether the workers are kept after an epoch.
        pin_memory_device: deprecated.
        in_order: whether batches of workers are in the order of the sampler.

    Raises:
        ValueError: options contradict each other (PyTorch's texts).
        TypeError: `multiprocessing_context` is no context.

    >>> import flambeau as torch
    >>> from flambeau.utils.data import DataLoader, TensorDataset
    >>> dataset = TensorDataset(torch.arange(6).reshape(3, 2), torch.tensor([0., 1., 2.]))
    >>> for x, y in DataLoader(dataset, batch_size=2):
    ...     print(x.tolist(), y.tolist())
    [[0, 1], [2, 3]] [0.0, 1.0]
    [[4, 5]] [2.0]
    """

    dataset: Any
    batch_size: int | None
    num_workers: int
    pin_memory: bool
    drop_last: bool
    timeout: float
    sampler: Any
    pin_memory_device: str
    prefetch_factor: int | None
    _iterator: _BaseDataLoaderIter | None
    __initialized = False

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Any = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        prefetch_factor = _checked_worker_options(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = _serializable(dataset)
        self.num_workers, self.prefetch_factor, self.timeout = num_workers, prefetch_factor, timeout
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            _check_stream_options(dataset, shuffle, sampler, batch_sampler)
        else:
            self._dataset_kind = _DatasetKind.Map
            shuffle = bool(shuffle)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and "
                                 "drop_last")
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler, self.batch_sampler, self.generator = sampler, batch_sampler, generator
        if collate_fn is None:
            collate_fn = _utils.collate.default_collate if self._auto_collation else _utils.collate.default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._IterableDataset_len_called: int | None = None
        self._iterator = None
        self.check_worker_number_rationality()

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    @property
    def multiprocessing_context(self) -> Any:
        """How workers are started; None: the default of the platform."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, multiprocessing_context: Any) -> None:
        context = multiprocessing_context
        if context is not None:
            if self.num_workers <= 0:
                raise ValueError("multiprocessing_context can only be used with multi-process loading (num_workers > "
                                 f"0), but got num_workers={self.num_workers}")
            if isinstance(context, str):
                methods = multiprocessing.get_all_start_methods()
                if context not in methods:
                    raise ValueError("multiprocessing_context option should specify a valid start method in "
                                     f"{methods!r}, but got multiprocessing_context={context!r}")
                context = multiprocessing.get_context(context)
            if not isinstance(context, BaseContext):
                raise TypeError("multiprocessing_context option should be a valid context object or a string "
                                f"specifying the start method, but got multiprocessing_context={context}")
        self.__multiprocessing_context = context

    def __setattr__(self, attr: str, val: Any) -> None:
        if self.__initialized and attr in _FIXED:
            raise ValueError(f"{attr} attribute should not be set after {self.__class__.__name__} is initialized")
        super().__setattr__(attr, val)

    def __iter__(self) -> _BaseDataLoaderIter:
        if not self.persistent_workers or self.num_workers == 0:
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self) -> int:
        if self._dataset_kind != _DatasetKind.Iterable:
            return len(self._index_sampler)
        # remembered, because the iteration warns if there are more
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else math.ceil(length / self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn if there are more workers than processors that this process may use."""
        if not self.num_workers:
            return
        knows_affinity = hasattr(os, "sched_getaffinity")
        processors = len(os.sched_getaffinity(0)) if knows_affinity else os.cpu_count()
        if processors is not None and self.num_workers <= processors:
            return
        if processors is None:
            advice = "DataLoader is not able to compute a suggested max number of worker in current system."
        else:
            advice = (f"Our suggested max number of worker in current system is {processors}"
                      f"{'' if knows_affinity else ' (`cpuset` is not taken into account)'}, which is smaller than "
                      "what this DataLoader is going to create.")
        warnings.warn(f"This DataLoader will create {self.num_workers} worker processes in total. {advice} Please be "
                      "aware that excessive worker creation might get DataLoader running slow or even freeze, lower "
                      "the worker number to avoid potential slowness/freeze if necessary.", stacklevel=2)


def _checked_worker_options(num_workers: int, timeout: float, prefetch_factor: int | None,
                            persistent_workers: bool) -> int | None:
    """Check the options of workers; return the prefetch factor."""
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError("prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to "
                         "enable multiprocessing, otherwise set prefetch_factor to None.")
    if num_workers > 0 and prefetch_factor is None:
        prefetch_factor = 2
    elif prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    return prefetch_factor


def _serializable(dataset: Any) -> Any:
    """A pipeline in a container that pickles it; any other dataset itself."""
    if isinstance(dataset, IterDataPipe):
        return _IterDataPipeSerializationWrapper(dataset)
    if isinstance(dataset, MapDataPipe):
        return _MapDataPipeSerializationWrapper(dataset)
    return dataset


def _check_stream_options(dataset: Any, shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    """Check the options of a stream, which has no indices; a pipeline's shufflers are set."""
    if isinstance(dataset, IterDataPipe):
        if shuffle is not None:
            apply_shuffle_settings(dataset, shuffle=shuffle)
    elif shuffle not in {False, None}:
        raise ValueError(
            f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}")
    if sampler is not None:
        raise ValueError(
            f"DataLoader with IterableDataset: expected unspecified sampler option, but got sampler={sampler}")
    if batch_sampler is not None:
        raise ValueError("DataLoader with IterableDataset: expected unspecified batch_sampler option, but got "
                         f"batch_sampler={batch_sampler}")
