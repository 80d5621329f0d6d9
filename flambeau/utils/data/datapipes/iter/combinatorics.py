"""Pipelines in another order."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Any

from ...sampler import SequentialSampler
from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..lengths import length_of
from ..random_state import Shuffling

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]


class SamplerIterDataPipe(IterDataPipe[Any]):
    """The indices that a sampler yields for a pipeline.

    Args:
        datapipe: a pipeline with a length.
        sampler: the sampler's class.
        sampler_args: positional arguments of its constructor.
        sampler_kwargs: keyword arguments of its constructor; the pipeline is `data_source`.

    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper, Sampler
    >>> list(Sampler(IterableWrapper("abc")))
    [0, 1, 2]
    """

    def __init__(self, datapipe: IterDataPipe[Any], sampler: Any = SequentialSampler,
                 sampler_args: tuple[Any, ...] | None = None, sampler_kwargs: dict[str, Any] | None = None) -> None:
        if not isinstance(datapipe, Sized):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        super().__init__()
        self.datapipe = datapipe
        self.sampler_args = sampler_args or ()
        self.sampler_kwargs = {} if sampler_kwargs is None else sampler_kwargs
        self.sampler_kwargs["data_source"] = datapipe
        self.sampler = sampler(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return length_of(self.sampler, self)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(Shuffling, IterDataPipe[Any]):
    """Samples in random order, from a buffer that is filled first (`shuffle`).

    Args:
        datapipe: the source.
        buffer_size: the length of the buffer; at least that of the source for a uniform order.
        unbatch_level: how often the source is unbatched before.

    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> sorted(IterableWrapper(range(4)).shuffle())
    [0, 1, 2, 3]
    """

    def __init__(self, datapipe: IterDataPipe[Any], *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        super().__init__()
        self._buffer: list[Any] = []
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size = buffer_size
        self._init_shuffling()

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        for sample in self.datapipe:
            if len(self._buffer) < self.buffer_size:
                self._buffer.append(sample)
                continue
            i = self._rng.randint(0, len(self._buffer) - 1)
            chosen, self._buffer[i] = self._buffer[i], sample
            yield chosen
        while self._buffer:
            yield self._buffer.pop(self._rng.randint(0, len(self._buffer) - 1))

    def __len__(self) -> int:
        return length_of(self.datapipe, self)

    def reset(self) -> None:
        """Empty the buffer and seed the generator."""
        self._buffer = []
        if self._enabled:
            self._begin_shuffling()

    def __getstate__(self) -> Any:
        state = (self.datapipe, self.buffer_size, self._enabled, self._seed, self._buffer, self._rng.getstate(),
                 self._valid_iterator_id, self._number_of_samples_yielded)
        return state if IterDataPipe.getstate_hook is None else IterDataPipe.getstate_hook(state)

    def __setstate__(self, state: Any) -> None:
        (self.datapipe, self.buffer_size, enabled, seed, self._buffer, generator, self._valid_iterator_id,
         self._number_of_samples_yielded) = state
        self._restore_shuffling(enabled, seed, generator)
