"""The graph of a pipeline: which pipelines it reads from."""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Collection
from typing import Any

from .datapipes.datapipe import IterDataPipe, MapDataPipe, _dill

__all__ = ["traverse", "traverse_dps"]

DataPipe = IterDataPipe[Any] | MapDataPipe[Any]
DataPipeGraph = dict[int, tuple[DataPipe, "DataPipeGraph"]]

_PIPES = (IterDataPipe, MapDataPipe)


def _nothing() -> None:
    """What a pipeline is replaced by while another one is pickled."""


def _relevant_state(state: Any) -> Any:
    """The part of a pipeline's state that may contain pipelines: pipelines and collections."""
    kinds = (IterDataPipe, MapDataPipe, Collection)
    if isinstance(state, dict):
        return {name: value for name, value in state.items() if isinstance(value, kinds)}
    if isinstance(state, (tuple, list)):
        return [value for value in state if isinstance(value, kinds)]
    return state if isinstance(state, kinds) else None


def _sources(pipe: DataPipe, only_datapipe: bool, seen: set[int]) -> list[DataPipe]:
    """The pipelines in the state of a pipeline; they are found by pickling it."""
    found: list[DataPipe] = []

    def reduce(each: DataPipe) -> Any:
        if each is pipe or id(each) in seen:
            raise NotImplementedError
        found.append(each)
        seen.add(id(each))
        return _nothing, ()

    try:
        for kind in _PIPES:
            kind.set_reduce_ex_hook(reduce)
            if only_datapipe:
                kind.set_getstate_hook(_relevant_state)
        try:
            pickle.Pickler(io.BytesIO()).dump(pipe)
        except (pickle.PickleError, AttributeError, TypeError):
            dill = _dill()
            if dill is None:
                raise
            dill.Pickler(io.BytesIO()).dump(pipe)
    finally:
        for kind in _PIPES:
            kind.set_reduce_ex_hook(None)
            if only_datapipe:
                kind.set_getstate_hook(None)
    return found


def _traverse(pipe: Any, only_datapipe: bool, seen: set[int]) -> DataPipeGraph:
    if not isinstance(pipe, _PIPES):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(pipe)} is found")
    if id(pipe) in seen:
        return {}
    seen.add(id(pipe))
    sources: DataPipeGraph = {}
    for source in _sources(pipe, only_datapipe, seen.copy()):
        sources.update(_traverse(source, only_datapipe, seen.copy()))
    return {id(pipe): (pipe, sources)}


def traverse_dps(datapipe: DataPipe) -> DataPipeGraph:
    """The graph of a pipeline: id -> (pipeline, graph of the pipelines that it reads from).

    Only attributes that are pipelines or collections are searched.

    Raises:
        RuntimeError: `datapipe` is no pipeline.

    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> from flambeau.utils.data.graph import traverse_dps
    >>> pipe = IterableWrapper([1]).map(abs)
    >>> traverse_dps(pipe)[id(pipe)][0]
    MapperIterDataPipe
    """
    return _traverse(datapipe, True, set())


def traverse(datapipe: DataPipe, only_datapipe: bool | None = None) -> DataPipeGraph:
    """The graph of a pipeline, as `traverse_dps`; deprecated.

    Args:
        datapipe: the pipeline.
        only_datapipe: whether only attributes that are pipelines or collections are searched.
    """
    text = "`traverse` function is deprecated and will be removed after 1.13. Please use `traverse_dps` instead."
    if not only_datapipe:
        text += " And, the behavior will be changed to the equivalent of `only_datapipe=True`."
    warnings.warn(text, FutureWarning, stacklevel=2)
    return _traverse(datapipe, bool(only_datapipe), set())
