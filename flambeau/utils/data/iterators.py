"""Iterators of loaders: in the loader's process, or over worker processes.

The loader puts numbered tasks, an index or a list of indices, into one queue per worker, `prefetch_factor` of them
ahead, and receives the batches from one queue of all workers. Batches that arrive early wait in `_task_info`, so that
the order is that of the sampler.

Shutdown. Workers are daemons, and they also end when their queue yields None, or when they notice that the loader's
process has another parent (`ManagerWatchdog`). The loader notices a dead worker by SIGCHLD, or at the latest when
it has waited for `MP_STATUS_CHECK_INTERVAL`. Nobody joins a queue's feeder thread, which could wait for a reader that
is dead: the loader cancels it for the index queues, workers for the result queue once `done_event` is set.

Memory. A batch's tensors are in shared memory. Where the system permits, the loader opens the descriptors of the
worker, which keeps them until a later task says that the batch has been received (`reductions.Kept`).
"""

from __future__ import annotations

import functools
import itertools
import os
import queue
import sys
import time
import warnings
from typing import Any, NoReturn, Self

from ... import multiprocessing as default_context
from ..._tensor.creation.generators import Generator
from ...autograd.profiler import record_function
from ...runtime import shared_memory
from ...runtime.exception_wrapper import ExceptionWrapper
from . import _utils
from ._utils import fetch, signal_handling, worker
from .datapipes.datapipe import IterDataPipe, MapDataPipe
from .distributed import process_group
from .graph_settings import apply_random_seed, apply_sharding
from .seeds import draw_seed

#: seconds in which a process whose connections are closed ends
_SECONDS_TO_DIE = 1.0


def _seed_pipeline(dataset: Any, seed: int | None) -> None:
    """Seed the random parts of a pipeline for an epoch; any other dataset is unchanged."""
    if isinstance(dataset, IterDataPipe):
        if seed is None:
            raise AssertionError("shared_seed must be provided for IterDataPipe workers")
        apply_random_seed(dataset, Generator().manual_seed(seed))


def _sharding_worker_init_fn(worker_init_fn: Any, world_size: int, rank: int, worker_id: int) -> None:
    """Initialise a worker of a pipeline: it yields its part, of the processes' parts first."""
    info = worker.get_worker_info()
    assert info is not None
    apply_sharding(info.dataset, info.num_workers * world_size, worker_id * world_size + rank)
    if worker_init_fn is not None:
        worker_init_fn(worker_id)


class _BaseDataLoaderIter:
    """What both iterators share."""

    def __init__(self, loader: Any) -> None:
        self._dataset = loader.dataset
        self._shared_seed: int | None = None
        self._draw_shared_seed(loader)
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._world_size, self._rank = process_group() or (1, 0)
        if loader.pin_memory and loader.pin_memory_device:
            warnings.warn("pin_memory_device is deprecated, the current accelerator will be used as the device,"
                          f"ignore pin_memory_device='{loader.pin_memory_device}'.", stacklevel=2)
        if loader.pin_memory:
            warnings.warn("'pin_memory' argument is set as true but no accelerator is found, then device pinned "
                          "memory won't be used.", stacklevel=2)
        self._pin_memory, self._pin_memory_device = False, None
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._sampler_iter: Any = iter(self._index_sampler)
        self._base_seed = draw_seed(loader.generator)
        self._persistent_workers = loader.persistent_workers
        self._num_yielded = 0
        self._profile_name = f"enumerate(DataLoader)#{self.__class__.__name__}.__next__"

    def _draw_shared_seed(self, loader: Any) -> None:
        if isinstance(self._dataset, IterDataPipe):
            self._shared_seed = draw_seed(loader.generator)
            _seed_pipeline(self._dataset, self._shared_seed)

    def __iter__(self) -> Self:
        return self

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._draw_shared_seed(loader)

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        with record_function(self._profile_name):
            data = self._next_data()
            self._num_yielded += 1
            expected = self._IterableDataset_len_called
            if self._dataset_kind == fetch.ITERABLE and expected is not None and self._num_yielded > expected:
                self._warn_of_length(expected)
            return data

    def _warn_of_length(self, expected: int) -> None:
        text = (f"Length of IterableDataset {self._dataset} was reported to be {expected}(when accessing "
                f"len(dataloader)), but {self._num_yielded} samples have been fetched. ")
        if self._num_workers > 0:
            text += ("For multiprocessing data-loading, this could be caused by not properly configuring the "
                     "IterableDataset replica at each worker. Please see "
                     "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples.")
        warnings.warn(text, stacklevel=3)

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> NoReturn:
        raise NotImplementedError("{} cannot be pickled", self.__class__.__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Loads in the loader's process."""

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        if self._num_workers != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires num_workers == 0")
        if isinstance(self._dataset, (IterDataPipe, MapDataPipe)):
            apply_sharding(self._dataset, self._world_size, self._rank)
        self._dataset_fetcher = fetch.create_fetcher(self._dataset_kind, self._dataset, self._auto_collation,
                                                     self._collate_fn, self._drop_last)

    def _next_data(self) -> Any:
        return self._dataset_fetcher.fetch(self._next_index())


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Loads in worker processes."""

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        if self._num_workers <= 0:
            raise AssertionError("num_workers must be greater than 0 for MultiProcessingDataLoaderIter")
        if self._prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        context = loader.multiprocessing_context or default_context
        self._worker_init_fn = loader.worker_init_fn
        if isinstance(self._dataset, (IterDataPipe, MapDataPipe)):
            self._worker_init_fn = functools.partial(_sharding_worker_init_fn, self._worker_init_fn, self._world_size,
                                                     self._rank)
        self._worker_result_queue = context.Queue()
        self._worker_pids_set = False
        self._shutdown = False
        self._process = os.getpid()
        self._workers_done_event = context.Event()
        self._index_queues: list[Any] = []
        self._workers: list[Any] = []
        for number in range(self._num_workers):
            self._start_worker(context, number)
        self._data_queue = self._worker_result_queue
        # without this permission, or /proc, batches come by a connection for each tensor
        self._opens_descriptors = sys.platform == "linux" and all(
            shared_memory.has_readable_descriptors(process.pid) for process in self._workers)
        signal_handling._set_worker_pids(id(self), tuple(process.pid for process in self._workers))
        signal_handling._set_SIGCHLD_handler()
        self._worker_pids_set = True
        self._reset(loader, first_iter=True)

    def _start_worker(self, context: Any, number: int) -> None:
        from pickle import PicklingError

        index_queue = context.Queue()
        index_queue.cancel_join_thread()
        process = context.Process(
            target=worker._worker_loop,
            args=(self._dataset_kind, self._dataset, index_queue, self._worker_result_queue, self._workers_done_event,
                  self._auto_collation, self._collate_fn, self._drop_last, self._base_seed, self._worker_init_fn,
                  number, self._num_workers, self._persistent_workers, self._shared_seed, _seed_pipeline))
        process.daemon = True
        try:
            process.start()
        except (TypeError, AttributeError, PicklingError):
            warnings.warn("Got pickle error when attempting to start a worker Process. This might be because the "
                          "worker Process arguments are not picklable. Python 3.14+ changed the multiprocessing start "
                          "method in non-Mac POSIX platforms to 'forkserver', which requires the worker Process "
                          "arguments to be picklable. You can also try multiprocessing.set_start_method('fork').",
                          stacklevel=3)
            raise
        # only started processes are listed, and joined
        self._index_queues.append(index_queue)
        self._workers.append(process)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        self._send_idx = 0  # the number of the next task
        self._rcvd_idx = 0  # the number of the next batch to return
        self._task_info: dict[int, tuple[Any, ...]] = {}  # number of a task -> (worker,) or (worker, batch)
        self._tasks_outstanding = 0
        self._workers_status = [True] * self._num_workers  # whether the worker has more to do in this epoch
        self._workers_num_tasks = [0] * self._num_workers
        self._received: list[list[int] | None] = [
            [] if self._opens_descriptors else None for _ in self._workers]  # tasks that the worker is still to be told
        self._worker_queue_idx_cycle = itertools.cycle(range(self._num_workers))
        if not first_iter:
            self._resume_workers()
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    def _resume_workers(self) -> None:
        """Begin the next epoch; batches of the last one are dropped."""
        for index_queue in self._index_queues:
            index_queue.put(worker._ResumeIteration(self._shared_seed))
        waiting = self._num_workers
        while waiting > 0:
            answer, data = self._get_data()
            if isinstance(answer, worker._ResumeIteration):
                if data is not None:
                    raise AssertionError("Expected return_data to be None when resuming iteration")
                waiting -= 1

    # ----- receiving -----

    def _try_get_data(self, timeout: float = _utils.MP_STATUS_CHECK_INTERVAL) -> tuple[bool, Any]:
        """Whether a batch arrived within the timeout, and the batch.

        Raises:
            RuntimeError: a worker has died, or too many files are open (PyTorch's texts).
        """
        try:
            return True, self._data_queue.get(timeout=timeout)
        except Exception as error:
            dead = self._dead_workers()
            if isinstance(error, (EOFError, OSError)):  # a worker that sent a batch was killed a moment ago
                deadline = time.monotonic() + _SECONDS_TO_DIE
                while not dead and time.monotonic() < deadline:
                    time.sleep(0.01)
                    dead = self._dead_workers()
            for number in dead:
                self._mark_worker_as_unavailable(number)
            if dead:
                pids = ", ".join(str(self._workers[number].pid) for number in dead)
                raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly") from error
            if isinstance(error, queue.Empty):
                return False, None
            _check_open_files()
            raise

    def _dead_workers(self) -> list[int]:
        return [number for number, process in enumerate(self._workers)
                if self._workers_status[number] and not process.is_alive()]

    def _get_data(self) -> Any:
        if self._timeout > 0:
            success, data = self._try_get_data(self._timeout)
            if not success:
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
            return data
        while True:
            success, data = self._try_get_data()
            if success:
                return data

    def _next_data(self) -> Any:
        while True:
            self._skip_tasks_of_ended_streams()
            if len(self._task_info[self._rcvd_idx]) == 2:
                number, data = self._task_info.pop(self._rcvd_idx)
                self._rcvd_idx += 1
                return self._process_data(data, number)
            if self._shutdown or self._tasks_outstanding <= 0:
                raise AssertionError(
                    "Invalid iterator state: shutdown or no outstanding tasks when fetching next data")
            task, data = self._get_data()
            self._tasks_outstanding -= 1
            received = self._received[self._task_info[task][0]]
            if received is not None:
                received.append(task)
            if self._dataset_kind == fetch.ITERABLE and isinstance(data, worker._IterableDatasetStopIteration):
                if self._persistent_workers:
                    self._workers_status[data.worker_id] = False
                else:
                    self._mark_worker_as_unavailable(data.worker_id)
                self._try_put_index()
            elif task == self._rcvd_idx:
                self._rcvd_idx += 1
                return self._process_data(data, self._task_info.pop(task)[0])
            elif not self._in_order:
                return self._process_data(data, self._task_info.pop(task)[0])
            else:
                self._task_info[task] += (data,)

    def _skip_tasks_of_ended_streams(self) -> None:
        """Advance to the next task whose batch is there or will come.

        Raises:
            StopIteration: there is none.
        """
        while self._rcvd_idx < self._send_idx:
            info = self._task_info.get(self._rcvd_idx)
            if info:
                if len(info) == 2 or self._workers_status[info[0]]:
                    return
                del self._task_info[self._rcvd_idx]
            self._rcvd_idx += 1
        if not self._persistent_workers:
            self._shutdown_workers()
        raise StopIteration

    def _process_data(self, data: Any, number: int) -> Any:
        self._workers_num_tasks[number] -= 1
        self._try_put_index()
        if isinstance(data, ExceptionWrapper):
            data.reraise()
        return data

    # ----- sending -----

    def _try_put_index(self) -> None:
        """Give the next task to the next worker that has more to do."""
        limit = self._prefetch_factor * self._num_workers
        if self._tasks_outstanding >= limit:
            raise AssertionError("Number of outstanding tasks exceeded maximum allowed tasks")
        try:
            index = self._next_index()
        except StopIteration:
            return
        for _ in range(self._num_workers):
            number = next(self._worker_queue_idx_cycle)
            if self._workers_status[number] and (
                    self._in_order or self._workers_num_tasks[number] < limit // sum(self._workers_status)):
                break
        else:
            return
        self._index_queues[number].put((self._send_idx, index, self._received[number]))
        if self._opens_descriptors:
            self._received[number] = []
        self._task_info[self._send_idx] = (number,)
        self._workers_num_tasks[number] += 1
        self._tasks_outstanding += 1
        self._send_idx += 1

    # ----- shutdown -----

    def _mark_worker_as_unavailable(self, worker_id: int, shutdown: bool = False) -> None:
        """Tell a worker to end; it is joined by `_shutdown_workers`, so that its errors are still noticed."""
        if not self._workers_status[worker_id] and not self._persistent_workers and not shutdown:
            raise AssertionError("Worker status inconsistent when marking worker as unavailable")
        self._index_queues[worker_id].put(None)
        self._workers_status[worker_id] = False
        if self._workers_done_event.is_set() != shutdown:
            raise AssertionError("_workers_done_event state does not match shutdown flag")

    def _shutdown_workers(self) -> None:
        """End the workers; at interpreter shutdown nothing is done, and they end as daemons.

        Forked processes inherit the iterator, and must not end the workers of another process.
        """
        if _utils is None or _utils.python_exit_status is not False or self._shutdown:
            return
        if self._process != os.getpid():
            return
        self._shutdown = True
        try:
            self._workers_done_event.set()
            for number in range(len(self._workers)):
                if self._persistent_workers or self._workers_status[number]:
                    self._mark_worker_as_unavailable(number, shutdown=True)
            for process in self._workers:
                process.join(timeout=_utils.MP_STATUS_CHECK_INTERVAL)
            for index_queue in self._index_queues:
                index_queue.cancel_join_thread()
                index_queue.close()
        finally:
            # last, since the steps above may hang where a worker was killed, and SIGCHLD interrupts them
            if self._worker_pids_set:
                signal_handling._remove_worker_pids(id(self))
                self._worker_pids_set = False
            for process in self._workers:
                if process.is_alive():
                    process.terminate()
                    process.join(timeout=_utils.MP_STATUS_CHECK_INTERVAL)

    def __del__(self) -> None:
        if hasattr(self, "_workers_done_event"):  # not after an error in the constructor
            self._shutdown_workers()


def _check_open_files() -> None:
    """Check that some more files can be opened: descriptors that exceed the limit are lost without an error.

    Raises:
        RuntimeError: they cannot (PyTorch's text).
    """
    import contextlib
    import errno
    import os

    try:
        with contextlib.ExitStack() as files:
            for _ in range(10):  # of the null device: a temporary file also needs a folder, found by opening a file
                files.callback(os.close, os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        if error.errno == errno.EMFILE:
            raise RuntimeError(
                "Too many open files. Communication with the workers is no longer possible. Please increase the limit "
                "using `ulimit -n` in the shell or change the sharing strategy by calling "
                "`torch.multiprocessing.set_sharing_strategy('file_system')` at the beginning of your code") from None
