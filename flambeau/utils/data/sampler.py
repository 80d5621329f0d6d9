"""Samplers: iterables of keys, or of lists of keys, that say in which order samples are loaded."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from ... import dtypes
from ..._tensor.creation.distributions import multinomial
from ..._tensor.creation.from_data import as_tensor
from ..._tensor.creation.generators import Generator
from ..._tensor.creation.random import randint, randperm
from ..._tensor.tensor import Tensor
from .seeds import draw_seed

__all__ = ["BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler",
           "WeightedRandomSampler"]

_T_co = TypeVar("_T_co", covariant=True)


class Sampler(Generic[_T_co]):
    """The base class of samplers; subclasses define `__iter__`, and `__len__` if the length is known.

    >>> from flambeau.utils.data import DataLoader, Sampler
    >>> class Backwards(Sampler):
    ...     def __init__(self, data):
    ...         self.data = data
    ...     def __iter__(self):
    ...         return reversed(range(len(self.data)))
    >>> [batch.tolist() for batch in DataLoader([1, 2, 3], sampler=Backwards([1, 2, 3]))]
    [[3], [2], [1]]
    """

    def __iter__(self) -> Iterator[_T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ...

    Args:
        data_source: a dataset with a length.

    >>> from flambeau.utils.data import SequentialSampler
    >>> list(SequentialSampler("abc"))
    [0, 1, 2]
    """

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


def _is_positive(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number > 0


class RandomSampler(Sampler[int]):
    """Random indices: a permutation, or draws with replacement.

    Args:
        data_source: a dataset with a length.
        replacement: whether an index may be drawn more than once.
        num_samples: the number of draws; the dataset's length by default.
        generator: the random number generator. By default one that is seeded from the default one.

    Raises:
        TypeError: `replacement` is not a bool.
        ValueError: `num_samples` is not a positive int.

    >>> import flambeau as torch
    >>> list(torch.utils.data.RandomSampler("abcde", generator=torch.Generator().manual_seed(0)))
    [4, 0, 1, 3, 2]
    """

    data_source: Sized
    replacement: bool

    def __init__(self, data_source: Sized, replacement: bool = False, num_samples: int | None = None,
                 generator: Generator | None = None) -> None:
        self.data_source, self.replacement = data_source, replacement
        self._num_samples, self.generator = num_samples, generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> int:
        """The number of draws; the dataset's length, which may change, unless it was given."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, generator = len(self.data_source), self.generator
        if generator is None:
            generator = Generator().manual_seed(draw_seed())
        if self.replacement:
            for count in (*itertools.repeat(32, self.num_samples // 32), self.num_samples % 32):
                yield from randint(high=n, size=(count,), dtype=dtypes.int64, generator=generator).tolist()
        else:
            for _ in range(self.num_samples // n):
                yield from randperm(n, generator=generator).tolist()
            # also if none is left: the state of the generator afterwards is PyTorch's
            yield from randperm(n, generator=generator)[:self.num_samples % n].tolist()

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order.

    Args:
        indices: the indices.
        generator: the random number generator.

    >>> import flambeau as torch
    >>> list(torch.utils.data.SubsetRandomSampler([5, 6, 7], torch.Generator().manual_seed(0)))
    [7, 5, 6]
    """

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for i in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with probabilities proportional to weights.

    Args:
        weights: a weight for each index.
        num_samples: the number of draws.
        replacement: whether an index may be drawn more than once.
        generator: the random number generator.

    Raises:
        ValueError: `num_samples` is not a positive int, `replacement` not a bool, or the weights have not one
            dimension.

    >>> import flambeau as torch
    >>> list(torch.utils.data.WeightedRandomSampler([0.0, 1.0, 0.0], 3))
    [1, 1, 1]
    """

    weights: Tensor
    num_samples: int
    replacement: bool

    def __init__(self, weights: Sequence[float], num_samples: int, replacement: bool = True,
                 generator: Generator | None = None) -> None:
        if not _is_positive(num_samples):
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = as_tensor(weights, dtype=dtypes.float64)
        if len(self.weights.shape) != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}")
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        yield from multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of consecutive keys of another sampler.

    Args:
        sampler: an iterable of keys.
        batch_size: the length of the lists.
        drop_last: whether a shorter last list is dropped.

    Raises:
        ValueError: `batch_size` is not a positive int, or `drop_last` not a bool.

    >>> from flambeau.utils.data import BatchSampler
    >>> list(BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not _is_positive(batch_size):
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        keys = iter(self.sampler)
        while batch := list(itertools.islice(keys, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
