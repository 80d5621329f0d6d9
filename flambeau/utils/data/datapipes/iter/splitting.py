"""One pipeline as several: copies of it, or parts by a function's result."""

from __future__ import annotations

import copy as copies
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..iterator_hooks import _SnapshotState
from ..utils.common import StreamWrapper, _check_unpickable_fn

__all__ = ["DemultiplexerIterDataPipe", "ForkerIterDataPipe"]


def _check_count(count: int) -> None:
    if count < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {count} is found")


class _Container(IterDataPipe[Any]):
    """What the parts of a pipeline share: the source's iterator, and which parts are being iterated.

    Subclasses define `_elements`, and `_clear`, which empties the buffers.
    """

    def __init__(self, datapipe: IterDataPipe[Any], num_instances: int, buffer_size: int, name: str) -> None:
        self.main_datapipe, self.num_instances, self.buffer_size = datapipe, num_instances, buffer_size
        if buffer_size < 0:
            warnings.warn(f"Unlimited buffer size is set for `{name}`, please be aware of OOM at random places",
                          UserWarning, stacklevel=4)
        self._restart()

    def _restart(self) -> None:
        self._datapipe_iterator: Iterator[Any] | None = None
        self._child_stop = [True] * self.num_instances
        self._exhausted = False
        self._clear()

    def _clear(self) -> None:
        raise NotImplementedError

    def reset(self) -> None:
        """Begin anew."""
        self._restart()

    def get_next_element_by_instance(self, instance_id: int) -> Iterator[Any]:
        """The samples of one part."""
        if self._datapipe_iterator is None and self._child_stop[instance_id]:
            self._datapipe_iterator = iter(self.main_datapipe)
            self._snapshot_state = _SnapshotState.Iterating
            self._exhausted = False
            self._child_stop = [False] * self.num_instances
        try:
            yield from self._elements(instance_id)
        finally:
            self._child_stop[instance_id] = True
            if all(self._child_stop):
                self._datapipe_iterator = None
            self._drop(instance_id)

    def _elements(self, instance_id: int) -> Iterator[Any]:
        raise NotImplementedError

    def _drop(self, instance_id: int) -> None:
        """Drop what is left in the buffers, when the iteration of a part ends."""

    def is_every_instance_exhausted(self) -> bool:
        """Whether all parts have been iterated to the end."""
        return self._exhausted and all(self._child_stop)

    def get_length_by_instance(self, instance_id: int) -> int:
        """The length of a part."""
        raise TypeError

    def _reduced(self, *own: Any) -> Any:
        state = (self.main_datapipe, self.num_instances, self.buffer_size, own, self._valid_iterator_id,
                 self._number_of_samples_yielded)
        return state if IterDataPipe.getstate_hook is None else IterDataPipe.getstate_hook(state)

    def _rebuilt(self, state: Any) -> Any:
        (self.main_datapipe, self.num_instances, self.buffer_size, own, self._valid_iterator_id,
         self._number_of_samples_yielded) = state
        self._restart()
        return own


class _ChildDataPipe(IterDataPipe[Any]):
    """A part of a pipeline; an iterator of one part is valid until a part is iterated a second time."""

    _is_child_datapipe = True

    def __init__(self, main_datapipe: _Container, instance_id: int) -> None:
        if not isinstance(main_datapipe, _Container):
            raise AssertionError("main_datapipe must implement _ContainerTemplate")
        self.main_datapipe, self.instance_id = main_datapipe, instance_id

    def __iter__(self) -> Iterator[Any]:
        return self.main_datapipe.get_next_element_by_instance(self.instance_id)

    def __len__(self) -> int:
        return self.main_datapipe.get_length_by_instance(self.instance_id)

    def _set_main_datapipe_valid_iterator_id(self) -> int:
        main = self.main_datapipe
        if main._valid_iterator_id is None:
            main._valid_iterator_id = 0
        elif main._valid_iterator_id == self._valid_iterator_id:  # this part begins anew, and so do the others
            main._valid_iterator_id += 1
            if not main.is_every_instance_exhausted():
                warnings.warn("Some child DataPipes are not exhausted when __iter__ is called. We are resetting the "
                              "buffer and each child DataPipe will read from the start again.", UserWarning,
                              stacklevel=2)
            main.reset()
        self._valid_iterator_id = main._valid_iterator_id
        return main._valid_iterator_id

    def _check_valid_iterator_id(self, iterator_id: int | None) -> bool:
        return iterator_id == self._valid_iterator_id == self.main_datapipe._valid_iterator_id


# ----- copies ------------------------------------------------------------------------------


def _no_op(x: Any) -> Any:
    return x


class _ForkerIterDataPipe(_Container):
    """Keeps what some copies have read and others have not."""

    def __init__(self, datapipe: IterDataPipe[Any], num_instances: int, buffer_size: int = 1000,
                 copy: str | None = None) -> None:
        super().__init__(datapipe, num_instances, buffer_size, "fork")
        functions = {None: _no_op, "shallow": copies.copy, "deep": copies.deepcopy}
        if copy not in functions:
            raise ValueError(f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`.")
        self.copy_fn: Callable[[Any], Any] = functions[copy]

    def __len__(self) -> int:
        return len(self.main_datapipe)

    def get_length_by_instance(self, instance_id: int) -> int:
        return len(self)

    def _clear(self) -> None:
        self.buffer: deque[Any] = deque()  # the samples from `_start` on
        self._start = 0
        self.child_pointers = [0] * self.num_instances  # how many samples each copy has read

    def _elements(self, instance_id: int) -> Iterator[Any]:
        while not self._child_stop[instance_id]:
            position = self.child_pointers[instance_id]
            if position < self._start + len(self.buffer):
                sample = self.buffer[position - self._start]
            else:
                if self._exhausted or self._datapipe_iterator is None:
                    return
                try:
                    sample = next(self._datapipe_iterator)
                except StopIteration:
                    self._exhausted = True
                    return
                self.buffer.append(sample)
            self.child_pointers[instance_id] += 1
            while self.buffer and min(self.child_pointers) > self._start:
                self.buffer.popleft()
                self._start += 1
            if 0 <= self.buffer_size < len(self.buffer):
                raise BufferError(f"ForkerIterDataPipe buffer overflow,buffer size {self.buffer_size} is "
                                  "insufficient.")
            yield self.copy_fn(sample)

    def _drop(self, instance_id: int) -> None:
        if all(self._child_stop):
            while self.buffer:
                StreamWrapper.close_streams(self.buffer.popleft())

    def __getstate__(self) -> Any:
        return self._reduced(self.copy_fn)

    def __setstate__(self, state: Any) -> None:
        (self.copy_fn,) = self._rebuilt(state)


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe[Any]):
    """Several pipelines of the same samples (`fork`).

    Args:
        datapipe: the source.
        num_instances: how many.
        buffer_size: by how many samples one may be ahead of another; -1: any number.
        copy: "shallow" or "deep", to copy each sample.

    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> one, other = IterableWrapper([1, 2]).fork(num_instances=2)
    >>> list(one), list(other)
    ([1, 2], [1, 2])
    """

    def __new__(cls, datapipe: IterDataPipe[Any], num_instances: int, buffer_size: int = 1000,
                copy: str | None = None) -> Any:
        """The pipelines."""
        _check_count(num_instances)
        if num_instances == 1:
            return datapipe
        container = _ForkerIterDataPipe(datapipe, num_instances, buffer_size, copy)
        return [_ChildDataPipe(container, i) for i in range(num_instances)]


# ----- parts -------------------------------------------------------------------------------


class _DemultiplexerIterDataPipe(_Container):
    """Keeps what belongs to other parts than the one that is read."""

    def __init__(self, datapipe: IterDataPipe[Any], num_instances: int, classifier_fn: Callable[[Any], int | None],
                 drop_none: bool, buffer_size: int) -> None:
        super().__init__(datapipe, num_instances, buffer_size, "demux")
        self.classifier_fn, self.drop_none = classifier_fn, drop_none

    def _clear(self) -> None:
        self.child_buffers: list[deque[Any]] = [deque() for _ in range(self.num_instances)]

    def _elements(self, instance_id: int) -> Iterator[Any]:
        buffer = self.child_buffers[instance_id]
        while not self._child_stop[instance_id]:
            if buffer:
                yield buffer.popleft()
                continue
            if self._exhausted or self._datapipe_iterator is None:
                return
            try:
                sample = next(self._datapipe_iterator)
            except StopIteration:
                self._exhausted = True
                self._datapipe_iterator = None
                return
            part = self.classifier_fn(sample)
            if part is None and self.drop_none:
                StreamWrapper.close_streams(sample)
                continue
            if part is None or not 0 <= part < self.num_instances:
                raise ValueError("Output of the classification fn should be between 0 and "
                                 f"{self.num_instances - 1}. {part} is returned.")
            if part == instance_id:
                yield sample
                continue
            self.child_buffers[part].append(sample)
            if 0 <= self.buffer_size < sum(map(len, self.child_buffers)):
                raise BufferError("DemultiplexerIterDataPipe buffer overflow, buffer size "
                                  f"{self.buffer_size} is insufficient.")

    def _drop(self, instance_id: int) -> None:
        buffer = self.child_buffers[instance_id]
        while buffer:
            StreamWrapper.close_streams(buffer.popleft())

    def __getstate__(self) -> Any:
        return self._reduced(self.classifier_fn, self.drop_none)

    def __setstate__(self, state: Any) -> None:
        self.classifier_fn, self.drop_none = self._rebuilt(state)


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe[Any]):
    """Several pipelines, each of the samples for which a function returns its number (`demux`).

    Args:
        datapipe: the source.
        num_instances: how many.
        classifier_fn: the function; None is permitted with `drop_none`.
        drop_none: whether samples with the result None are dropped.
        buffer_size: how many samples of other parts are kept; -1: any number.

    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> even, odd = IterableWrapper(range(4)).demux(2, (2).__rmod__)
    >>> list(even), list(odd)
    ([0, 2], [1, 3])
    """

    def __new__(cls, datapipe: IterDataPipe[Any], num_instances: int, classifier_fn: Callable[[Any], int | None],
                drop_none: bool = False, buffer_size: int = 1000) -> Any:
        """The pipelines."""
        _check_count(num_instances)
        _check_unpickable_fn(classifier_fn)
        container = _DemultiplexerIterDataPipe(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        return [_ChildDataPipe(container, i) for i in range(num_instances)]
