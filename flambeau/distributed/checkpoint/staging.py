"""Copies of state dicts, which `async_save` writes while training goes on."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from .metadata import STATE_DICT_TYPE
from .states.copies import copy_tensors, create_cpu_state_dict

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]


@runtime_checkable
class AsyncStager(Protocol):
    """Copies state dicts.

    A class of a program may return a future from `stage`; `async_save` then returns an `AsyncSaveResponse`.
    """

    _synchronize_after_execute: bool = True

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Whether `async_save` calls `synchronize_staging` before it returns."""
        return self._synchronize_after_execute

    def stage(self, state_dict: STATE_DICT_TYPE) -> Future[STATE_DICT_TYPE] | STATE_DICT_TYPE:
        """Return a copy.

        Raises:
            NotImplementedError: the class does not implement it (PyTorch's text).
        """
        raise NotImplementedError(f"{type(self).__name__} must implement stage method")

    def synchronize_staging(self) -> None:
        """Wait for the copy."""

    def close(self) -> None:
        """End threads."""


@dataclass
class StagingOptions:
    """Options of `DefaultStager`.

    Args:
        use_pinned_memory: without effect.
        use_shared_memory: whether other processes may map the copies.
        use_async_staging: whether a thread copies.
        use_non_blocking_copy: needs an accelerator.
    """

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


def _copied(state_dict: STATE_DICT_TYPE, share_memory: bool = False, type_check: bool = False) -> STATE_DICT_TYPE:
    target = create_cpu_state_dict(state_dict, share_memory=share_memory)
    return copy_tensors(state_dict, target, type_check=type_check)


class DefaultStager(AsyncStager):
    """Copies state dicts, in a thread if the options say so.

    Args:
        config: the options.

    Raises:
        AssertionError: copies that do not block need an accelerator (PyTorch's text).
    """

    def __init__(self, config: StagingOptions | None = None) -> None:
        self._config = config = config or StagingOptions()
        if config.use_non_blocking_copy:
            raise AssertionError("Non-blocking copy requires that the current accelerator is available.")
        self._executor = ThreadPoolExecutor(1, "checkpoint stager") if config.use_async_staging else None
        self._future: Future[STATE_DICT_TYPE] | None = None

    def stage(self, state_dict: STATE_DICT_TYPE, **kwargs: Any) -> STATE_DICT_TYPE | Future[STATE_DICT_TYPE]:
        if self._executor is None:
            return _copied(state_dict, self._config.use_shared_memory)
        self._future = self._executor.submit(_copied, state_dict, self._config.use_shared_memory)
        return self._future

    def synchronize_staging(self) -> None:
        if self._future is not None:
            self._future.result()

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True)


class BlockingAsyncStager(AsyncStager):
    """Copies state dicts before `async_save` goes on.

    Args:
        cache_staged_state_dict: whether to copy to the same memory each time.
        type_check: whether objects that are no tensors, numbers, strings or containers of them are an error.
    """

    _synchronize_after_execute: bool = False

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False) -> None:
        self.cache_staged_state_dict, self.type_check = cache_staged_state_dict, type_check
        self.state_dict_cache: STATE_DICT_TYPE | None = None

    def stage(self, state_dict: STATE_DICT_TYPE) -> STATE_DICT_TYPE:
        if not self.cache_staged_state_dict:
            return _copied(state_dict, type_check=self.type_check)
        if self.state_dict_cache is None:
            self.state_dict_cache = create_cpu_state_dict(state_dict)
        return copy_tensors(state_dict, self.state_dict_cache)

    def synchronize_staging(self) -> None:
        pass

    def close(self) -> None:
        pass
