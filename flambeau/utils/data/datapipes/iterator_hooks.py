"""What is added to `__iter__` and `reset` of each pipeline class: one valid iterator at a time, and restored states.

Pipelines have buffers, so that a second iterator would disturb the first: creating one makes the first one raise.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from enum import Enum
from typing import Any

from ....autograd.profiler import _profiler_enabled as is_profiling
from ....autograd.profiler import record_function


class _SnapshotState(Enum):
    """Whether a pipeline was restored: the first `__iter__` after that does not reset it."""

    NotStarted = 0
    Restored = 1
    Iterating = 2


# ----- texts -------------------------------------------------------------------------------

_FEEDBACK = ("\nFor feedback regarding this single iterator per IterDataPipe constraint, feel free to comment on this "
             "issue: https://github.com/pytorch/data/issues/45.")


def _describe(pipe: Any) -> str:
    """The class and the arguments of a pipe: "MapperIterDataPipe(datapipe=..., fn=...)"."""
    return f"{pipe.__class__.__name__}({_arguments(pipe)})"


def _arguments(pipe: Any) -> str:
    names = set(inspect.signature(pipe.__class__).parameters)
    return ", ".join(f"{name}={value.__name__ if inspect.isfunction(value) else repr(value)}"
                     for name, value in inspect.getmembers(pipe) if name in names)


# ----- validity ----------------------------------------------------------------------------


def _is_child(pipe: Any) -> bool:
    return getattr(pipe, "_is_child_datapipe", False) is True


def _begin_iterator(pipe: Any) -> int | None:
    """Make the iterator that is created now the only valid one, reset the pipe, and return the iterator's number."""
    if _is_child(pipe):
        if not hasattr(pipe, "_set_main_datapipe_valid_iterator_id"):
            raise RuntimeError("ChildDataPipe must have method `_set_main_datapipe_valid_iterator_id`.")
        pipe._set_main_datapipe_valid_iterator_id()
    else:
        pipe._valid_iterator_id = 0 if pipe._valid_iterator_id is None else pipe._valid_iterator_id + 1
        pipe.reset()
    return pipe._valid_iterator_id


def _check_iterator(pipe: Any, number: int | None) -> None:
    """Check that an iterator is the valid one.

    Raises:
        RuntimeError: another one was created since (PyTorch's texts).
    """
    if _is_child(pipe):
        if not hasattr(pipe, "_check_valid_iterator_id"):
            raise RuntimeError("ChildDataPipe must have method `_check_valid_iterator_id`.")
        if not pipe._check_valid_iterator_id(number):
            raise RuntimeError("This iterator has been invalidated, because a new iterator has been created from one "
                               f"of the ChildDataPipes of {_describe(pipe.main_datapipe)}.{_FEEDBACK}")
    elif pipe._valid_iterator_id != number:
        raise RuntimeError("This iterator has been invalidated because another iterator has been created from the "
                           f"same IterDataPipe: {_describe(pipe)}\nThis may be caused by multiple references to the "
                           "same IterDataPipe. We recommend using `.fork()` if that is necessary." + _FEEDBACK)


# ----- hooks -------------------------------------------------------------------------------


def _next_of(iterator: Iterator[Any], pipe: Any) -> Any:
    """The next element; profiled if a profile is recorded."""
    if not is_profiling():
        return next(iterator)
    if "_profile_name" not in pipe.__dict__:
        pipe._profile_name = _describe(pipe).replace("IterDataPipe", "").replace("MapDataPipe", "")
    with record_function(pipe._profile_name):
        return next(iterator)


def _explain(error: Exception, pipe: Any) -> None:
    """Add to the text of an exception of a pipe which pipe it was."""
    note = f"This exception is thrown by __iter__ of {_describe(pipe)}"
    if not error.args or not isinstance(error.args[0], str):
        error.args = ("\n" + note,)
    elif "thrown by __iter__ of" not in error.args[0] and (
            "single iterator per IterDataPipe constraint" not in error.args[0]):
        error.args = (f"{error.args[0]}\n{note}", *error.args[1:])


def _hooked_generator(function: Any) -> Any:
    @functools.wraps(function)
    def iterate(self: Any) -> Iterator[Any]:
        generator = function(self)
        if self._fast_forward_iterator:
            restored, self._fast_forward_iterator = self._fast_forward_iterator, None
            self._snapshot_state = _SnapshotState.Iterating
            yield from restored
            return
        number = _begin_iterator(self)
        try:
            while True:
                try:
                    element = _next_of(generator, self)
                except StopIteration:
                    return
                self._number_of_samples_yielded += 1
                yield element
                _check_iterator(self, number)
        except Exception as error:
            _explain(error, self)
            raise

    return iterate


class IteratorDecorator:
    """The iterator that an `__iter__` which is no generator function returned."""

    def __init__(self, iterator: Any, datapipe: Any, iterator_id: int | None, has_next_method: bool) -> None:
        self.iterator, self.datapipe, self.iterator_id = iterator, datapipe, iterator_id
        self.self_and_has_next_method = iterator is datapipe and has_next_method

    def __iter__(self) -> IteratorDecorator:
        return self

    def __next__(self) -> Any:
        _check_iterator(self.datapipe, self.iterator_id)
        element = _next_of(self.iterator, self.datapipe)
        if not self.self_and_has_next_method:  # the pipe's own `__next__` counts
            self.datapipe._number_of_samples_yielded += 1
        return element

    def __getattr__(self, name: str) -> Any:
        return getattr(self.iterator, name)


def hook_iterator(namespace: dict[str, Any]) -> None:
    """Replace `__iter__` and `__next__` of a class that is being made."""
    function = namespace["__iter__"]
    if inspect.isgeneratorfunction(function):
        namespace["__iter__"] = _hooked_generator(function)
        return
    own_next = namespace.get("__next__")
    if own_next is not None:
        @functools.wraps(own_next)
        def advance(self: Any) -> Any:
            element = own_next(self)
            self._number_of_samples_yielded += 1
            return element

        namespace["__next__"] = advance

    @functools.wraps(function)
    def iterate(self: Any) -> Any:
        iterator = function(self)
        self._snapshot_state = _SnapshotState.Iterating
        if self._fast_forward_iterator:
            restored, self._fast_forward_iterator = self._fast_forward_iterator, None
            return restored
        return IteratorDecorator(iterator, self, _begin_iterator(self), own_next is not None)

    namespace["__iter__"] = iterate


def hook_reset(namespace: dict[str, Any]) -> None:
    """Replace `reset` of a class that is being made: a restored pipeline is not reset."""
    function = namespace["reset"]

    @functools.wraps(function)
    def reset(self: Any) -> None:
        if self._snapshot_state is not _SnapshotState.Restored:
            self._number_of_samples_yielded = 0
            self._fast_forward_iterator = None
            function(self)
        self._snapshot_state = _SnapshotState.Iterating

    namespace["reset"] = reset
