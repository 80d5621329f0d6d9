"""Pipelines that apply functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..._utils.collate import default_collate
from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..lengths import length_of
from ..utils.common import _check_unpickable_fn, validate_input_col

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]


def apply_to_columns(fn: Callable[..., Any], sample: Any, columns: Any) -> Any:
    """Call a function with a sample, with one of its columns, or with several."""
    if columns is None:
        return fn(sample)
    if isinstance(columns, (list, tuple)):
        return fn(*(sample[column] for column in columns))
    return fn(sample[columns])


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe[Any]):
    """A function applied to each sample, or to columns of it (`map`).

    Args:
        datapipe: the source.
        fn: the function.
        input_col: the index or key of the column that is passed, or a list of them; None: the sample.
        output_col: the column that the result is stored in, -1 to append it; None: the first of `input_col`.

    Raises:
        ValueError: the columns do not fit each other or the function.

    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper([(1, 2), (3, 4)]).map(abs, input_col=1, output_col=-1))
    [(1, 2, 2), (3, 4, 4)]
    """

    datapipe: IterDataPipe[Any]
    fn: Callable[..., Any]

    def __init__(self, datapipe: IterDataPipe[Any], fn: Callable[..., Any], input_col: Any = None,
                 output_col: Any = None) -> None:
        super().__init__()
        _check_unpickable_fn(fn)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.datapipe, self.fn, self.input_col, self.output_col = datapipe, fn, input_col, output_col
        validate_input_col(fn, input_col)

    def _apply_fn(self, sample: Any) -> Any:
        result = apply_to_columns(self.fn, sample, self.input_col)
        if self.input_col is None:
            return result
        is_tuple = isinstance(sample, tuple)
        if is_tuple:
            sample = list(sample)
        if self.output_col == -1:
            sample.append(result)
        elif self.output_col is not None:
            sample[self.output_col] = result
        elif isinstance(self.input_col, (list, tuple)):
            sample[self.input_col[0]] = result
            for column in sorted(self.input_col[1:], reverse=True):
                del sample[column]
        else:
            sample[self.input_col] = result
        return tuple(sample) if is_tuple else sample

    def __iter__(self) -> Iterator[Any]:
        for sample in self.datapipe:
            yield self._apply_fn(sample)

    def __len__(self) -> int:
        return length_of(self.datapipe, self)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches collated to tensors (`collate`).

    Args:
        datapipe: a pipeline of batches.
        conversion: a function of a batch; `default_collate` by default.
        collate_fn: the same.

    Raises:
        TypeError: `conversion` is no function: there are no data frames.

    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper(range(3)).batch(2).collate())
    [tensor([0, 1]), tensor([2])]
    """

    def __init__(self, datapipe: IterDataPipe[Any], conversion: Callable[..., Any] = default_collate,
                 collate_fn: Callable[..., Any] | None = None) -> None:
        super().__init__(datapipe, fn=conversion if collate_fn is None else collate_fn)
