"""The loop of worker processes."""

from __future__ import annotations

import os
import queue
import random
from dataclasses import dataclass
from typing import Any

from ...._tensor.memory.reductions import Kept
from ....random import worker_info as _asked_by_generators
from ....runtime.exception_wrapper import ExceptionWrapper
from . import IS_WINDOWS, MP_STATUS_CHECK_INTERVAL, fetch, signal_handling

_MASK = 0xFFFFFFFF


class ManagerWatchdog:
    """Tells a worker whether the loader's process is alive.

    >>> from flambeau.utils.data._utils.worker import ManagerWatchdog
    >>> ManagerWatchdog().is_alive()
    True
    """

    def __init__(self) -> None:
        self.manager_pid = os.getppid()
        self.manager_dead = False

    def is_alive(self) -> bool:
        """Whether it is alive: when a process ends, its children get another parent.

        One that ended before this object was made already has another parent, hence the second question: the sentinel
        of the loader's process answers late only, since workers that were forked later keep it open.
        """
        if not self.manager_dead:
            import multiprocessing

            parent = multiprocessing.parent_process()
            self.manager_dead = (not IS_WINDOWS and os.getppid() != self.manager_pid) or (
                parent is not None and not parent.is_alive())
        return not self.manager_dead


# ----- what a worker knows -----------------------------------------------------------------


@dataclass(frozen=True)
class _RNG:
    """Generators of one worker thread."""

    random_generator: random.Random
    torch_generator: Any
    numpy_generator: Any = None


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows of itself.

    Attributes:
        id: its number, from 0.
        num_workers: the number of workers.
        seed: the seed of `random` and of the default generator.
        dataset: its copy of the dataset.
        rng: generators of a worker thread; None in a process.
        worker_method: "multiprocessing".
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: _RNG | None = None
    worker_method: str | None = "multiprocessing"


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """What a worker process knows of itself: `id`, `num_workers`, `seed`, `dataset`; None in the main process.

    >>> from flambeau.utils.data import get_worker_info
    >>> get_worker_info() is None
    True
    """
    return _worker_info


_asked_by_generators[:] = [get_worker_info]


# ----- messages ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """A worker's stream has ended."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """The next epoch begins, in workers that are kept."""

    seed: int | None = None


# ----- seeds -------------------------------------------------------------------------------


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """The seed of a worker's NumPy generator, four words.

    They are derived from the seed, so that NumPy's stream differs from that of `random`, which is the same generator
    and has the plain seed.
    """
    from numpy.random import SeedSequence

    return SeedSequence([worker_id, base_seed & _MASK, base_seed >> 32, 0]).generate_state(4).tolist()


def _seed_generators(base_seed: int, worker_id: int) -> int:
    import numpy as np

    from ...._tensor.creation.generators import manual_seed

    seed = base_seed + worker_id
    random.seed(seed)
    manual_seed(seed)
    np.random.seed(_generate_state(base_seed, worker_id))
    return seed


# ----- the loop ----------------------------------------------------------------------------


def _worker_loop(dataset_kind: int, dataset: Any, index_queue: Any, data_queue: Any, done_event: Any,
                 auto_collation: bool, collate_fn: Any, drop_last: bool, base_seed: int, init_fn: Any, worker_id: int,
                 num_workers: int, persistent_workers: bool, shared_seed: int | None, seed_dataset: Any = None) -> None:
    """Fetch the batches that the index queue asks for, until it yields None or the loader's process has ended.

    `seed_dataset(dataset, seed)` seeds a pipeline when an epoch begins.
    """
    global _worker_info
    try:
        signal_handling._set_worker_signal_handlers()
        from ....multiprocessing import _set_thread_name
        from ....switches import set_num_threads

        _set_thread_name("pt_data_worker")
        set_num_threads(1)
        seed = _seed_generators(base_seed, worker_id)
        if seed_dataset is not None:
            seed_dataset(dataset, shared_seed)
        _worker_info = WorkerInfo(id=worker_id, num_workers=num_workers, seed=seed, dataset=dataset)

        def create_fetcher() -> Any:
            return fetch.create_fetcher(dataset_kind, dataset, auto_collation, collate_fn, drop_last)

        init_exception = None
        try:
            if init_fn is not None:
                init_fn(worker_id)
            fetcher = create_fetcher()
        except Exception:
            init_exception = ExceptionWrapper(where=f"in DataLoader worker process {worker_id}")
        stream_ended = False
        kept: dict[int, list[Any]] = {}  # number of a task -> shared memory that the loader has yet to open
        stale: list[Any] = []
        watchdog = ManagerWatchdog()
        while watchdog.is_alive():
            try:
                message = index_queue.get(timeout=MP_STATUS_CHECK_INTERVAL)
            except queue.Empty:
                continue
            if isinstance(message, _ResumeIteration):
                stale.append(kept)  # the loader may not have opened them yet; it has when it asks for a batch
                kept = {}
                data_queue.put((message, None))
                stream_ended = False
                if seed_dataset is not None:
                    seed_dataset(dataset, message.seed)
                fetcher = create_fetcher()
                continue
            if message is None:
                if not done_event.is_set() and not stream_ended:
                    raise AssertionError("Received final signal but neither done_event nor iteration_end is set")
                break
            if done_event.is_set() or stream_ended:
                continue  # until None arrives
            number, index, received = message
            stale.clear()
            for each in received or ():
                kept.pop(each, None)
            data: Any
            if init_exception is not None:
                data, init_exception = init_exception, None
            else:
                try:
                    data = fetcher.fetch(index)
                except Exception as error:
                    if isinstance(error, StopIteration) and dataset_kind == fetch.ITERABLE:
                        data = _IterableDatasetStopIteration(worker_id)
                        stream_ended = True
                    else:
                        data = ExceptionWrapper(where=f"in DataLoader worker process {worker_id}")
            if received is not None:
                data = Kept(data, kept.setdefault(number, []))
            data_queue.put((number, data))
            del data, number, index, message  # memory is free while the worker waits
    except KeyboardInterrupt:
        pass  # the main process gets it too
    if done_event.is_set():
        data_queue.cancel_join_thread()
        data_queue.close()

