"""Pipelines that select samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import StreamWrapper, _check_unpickable_fn, validate_input_col
from .callable import apply_to_columns

__all__ = ["FilterIterDataPipe"]


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe[Any]):
    """The samples for which a function returns True (`filter`).

    Args:
        datapipe: the source.
        filter_fn: a function that returns a bool.
        input_col: the index or key of the column that is passed, or a list of them; None: the sample.

    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper(["a", "", "b"]).filter(bool))
    ['a', 'b']
    """

    datapipe: IterDataPipe[Any]
    filter_fn: Callable[..., Any]

    def __init__(self, datapipe: IterDataPipe[Any], filter_fn: Callable[..., Any], input_col: Any = None) -> None:
        super().__init__()
        _check_unpickable_fn(filter_fn)
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col
        validate_input_col(filter_fn, input_col)

    def __iter__(self) -> Iterator[Any]:
        for sample in self.datapipe:
            keep = apply_to_columns(self.filter_fn, sample, self.input_col)
            if not isinstance(keep, bool):
                raise ValueError("Boolean output is required for `filter_fn` of FilterIterDataPipe, got", type(keep))
            if keep:
                yield sample
            else:
                StreamWrapper.close_streams(sample)
