"""Pipelines: the base classes of streams and maps that are composed by calls of methods."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, TypeVar

from ..dataset import Dataset, IterableDataset
from ._typing import _DataPipeMeta, _IterDataPipeMeta
from .iterator_hooks import _SnapshotState

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"]

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class DataChunk(list[_T]):
    """A batch of a pipeline: a list.

    >>> from flambeau.utils.data import DataChunk
    >>> DataChunk([1, 2]).as_str()
    '[1, 2]'
    """

    def __init__(self, items: Iterable[_T]) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """The text of the list, after `indent`."""
        return f"{indent}[{', '.join(map(str, self))}]"

    def __iter__(self) -> Iterator[_T]:
        yield from super().__iter__()

    def raw_iterator(self) -> Iterator[_T]:
        """The elements as they were given."""
        yield from self.items


class _Functional:
    """Functional names: a registered class is a method of every pipeline of its kind.

    Subclasses define `functions`, and the hooks by which `graph` traverses a pipeline.
    """

    functions: ClassVar[dict[str, Callable[..., Any]]]
    reduce_ex_hook: ClassVar[Callable[..., Any] | None] = None
    getstate_hook: ClassVar[Callable[..., Any] | None] = None
    str_hook: ClassVar[Callable[..., Any] | None] = None
    repr_hook: ClassVar[Callable[..., Any] | None] = None

    def __getattr__(self, attribute_name: str) -> Any:
        function = _base_of(type(self)).functions.get(attribute_name)
        if function is None:
            raise AttributeError(f"'{self.__class__.__name__}' object has no attribute '{attribute_name}")
        method = functools.partial(function, self)
        functools.update_wrapper(method, function, assigned=("__doc__",))
        return method

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Add a function of a pipeline as a method."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(cls, function_name: str, cls_to_register: Any,
                                      enable_df_api_tracing: bool = False) -> None:
        """Add a class as a method; the pipeline is the first argument of its constructor.

        Raises:
            Exception: the name is taken.
        """
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")

        def construct(source_dp: Any, *args: Any, **kwargs: Any) -> Any:
            return cls_to_register(source_dp, *args, **kwargs)

        functools.update_wrapper(construct, cls_to_register, assigned=("__doc__",))
        cls.functions[function_name] = construct

    def __getstate__(self) -> Any:
        hook = _base_of(type(self)).getstate_hook
        return self.__dict__ if hook is None else hook(self.__dict__)

    def __reduce_ex__(self, *args: Any, **kwargs: Any) -> Any:
        hook = _base_of(type(self)).reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(*args, **kwargs)

    @classmethod
    def set_getstate_hook(cls, hook_fn: Callable[..., Any] | None) -> None:
        """Set the function that replaces the state that is pickled."""
        base = _base_of(cls)
        if base.getstate_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing getstate_hook")
        base.getstate_hook = hook_fn

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: Callable[..., Any] | None) -> None:
        """Set the function that replaces `__reduce_ex__`."""
        base = _base_of(cls)
        if base.reduce_ex_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing reduce_ex_hook")
        base.reduce_ex_hook = hook_fn

    def __repr__(self) -> str:
        return self.repr_hook(self) if self.repr_hook is not None else type(self).__qualname__

    def __str__(self) -> str:
        return self.str_hook(self) if self.str_hook is not None else type(self).__qualname__

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.functions]


class IterDataPipe(_Functional, IterableDataset[_T_co], metaclass=_IterDataPipeMeta):
    """A pipeline that is a stream; subclasses define `__iter__`, and `reset` if they have buffers.

    Only the iterator that was created last is valid.

    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper(range(6)).filter(bool).batch(2))
    [[1, 2], [3, 4], [5]]
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    _valid_iterator_id: int | None = None
    _number_of_samples_yielded: int = 0
    _snapshot_state: _SnapshotState = _SnapshotState.NotStarted
    _fast_forward_iterator: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[_T_co]:
        return self

    def reset(self) -> None:
        """Set the pipeline to its initial state; called whenever an iteration begins."""


class DFIterDataPipe(IterDataPipe[Any]):
    """A pipeline of data frames.

    >>> from flambeau.utils.data import DFIterDataPipe
    >>> DFIterDataPipe()
    DFIterDataPipe
    """

    def _is_dfpipe(self) -> bool:
        return True


class MapDataPipe(_Functional, Dataset[_T_co], metaclass=_DataPipeMeta):
    """A pipeline that is a map; subclasses define `__getitem__` and `__len__`.

    >>> from flambeau.utils.data.datapipes.map import SequenceWrapper
    >>> list(SequenceWrapper(range(5)).batch(2))
    [[0, 1], [2, 3], [4]]
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}


def _base_of(cls: type) -> type[_Functional]:
    """The class that has the hooks of a pipeline: `IterDataPipe` or `MapDataPipe`."""
    return IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe


# ----- pipelines in loaders -------------------------------------------------------------------


def _dill() -> Any:
    """The module `dill`, which pickles lambdas, if it is installed; else None."""
    try:
        import dill
    except ModuleNotFoundError:
        return None
    dill.extend(use_dill=False)
    return dill


class _DataPipeSerializationWrapper:
    """Pickles a pipeline with `dill` where `pickle` cannot."""

    def __init__(self, datapipe: Any) -> None:
        self._datapipe = datapipe

    def __getstate__(self) -> tuple[bytes, bool]:
        try:
            return pickle.dumps(self._datapipe), False
        except Exception:
            dill = _dill()
            if dill is None:
                raise
            return dill.dumps(self._datapipe), True

    def __setstate__(self, state: tuple[bytes, bool]) -> None:
        value, with_dill = state
        self._datapipe = (_dill() if with_dill else pickle).loads(value)

    def __len__(self) -> int:
        try:
            return len(self._datapipe)
        except Exception as error:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length") from error


class _IterDataPipeSerializationWrapper(_DataPipeSerializationWrapper, IterDataPipe[Any]):
    """A stream in a loader."""

    def __init__(self, datapipe: IterDataPipe[Any]) -> None:
        super().__init__(datapipe)
        self._datapipe_iter: Iterator[Any] | None = None

    def __iter__(self) -> Any:
        self._datapipe_iter = iter(self._datapipe)
        return self

    def __next__(self) -> Any:
        if self._datapipe_iter is None:
            raise AssertionError("Iterator has not been initialized; call __iter__() before __next__()")
        return next(self._datapipe_iter)


class _MapDataPipeSerializationWrapper(_DataPipeSerializationWrapper, MapDataPipe[Any]):
    """A map in a loader."""

    def __getitem__(self, idx: Any) -> Any:
        return self._datapipe[idx]
