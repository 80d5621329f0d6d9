"""What operators on fake tensors return, by the metadata of their arguments: each is inferred once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import devices, dtypes
from .._tensor import Tensor
from .._tensor.meta import meta_array
from .._tensor.overriding.aten_arguments import asked
from .._tensor.tensor import wrap
from ..backends.bit_views import bits_of
from ..backends.numpy.memory import address, element_strides, owner
from ..modes import inference
from ..ops.overloads import OpOverload

#: calls whose results are kept
_MOST = 4096
#: types of arguments that are compared by value
_VALUES = frozenset((int, float, complex, bool, str, type(None), dtypes.dtype, devices.device, devices.layout,
                     devices.memory_format))


class DispatchCacheInfo(NamedTuple):
    """How often results were known, and why they were not kept."""

    hits: int
    misses: int
    bypasses: dict[str, int]
    size: int


class Uncached(Exception):
    """A call whose result is not kept; its text is the reason."""


class FakeTensorCache:
    """The results of operators on fake tensors, of all modes."""

    def __init__(self) -> None:
        self._entries: dict[Any, Any] = {}
        self._hits = self._misses = 0
        self._bypasses: Counter[str] = Counter()

    def clear(self) -> None:
        """Forget the results and the counts."""
        self.__init__()  # type: ignore[misc]

    def info(self) -> DispatchCacheInfo:
        """The counts."""
        return DispatchCacheInfo(self._hits, self._misses, dict(self._bypasses), len(self._entries))

    def run(self, func: OpOverload, args: Any, kwargs: Any, infer: Callable[[], Any]) -> Any:
        """The result of an operator on meta tensors.

        Args:
            args, kwargs: its arguments.
            infer: computes the result.
        """
        try:
            key = _key(func, args, kwargs)
        except Uncached as reason:
            self._bypasses[str(reason)] += 1
            return infer()
        entry = self._entries.get(key)
        if entry is not None:
            self._hits += 1
            kind, parts = entry
            outs = [wrap(meta_array(*part)) for part in parts]
            return outs[0] if kind is None else kind(outs)
        self._misses += 1
        result = infer()
        entry = _entry(result, args)
        if entry is not None:
            if len(self._entries) >= _MOST:
                self._entries.clear()
            self._entries[key] = entry
        return result


def _key(func: OpOverload, args: Any, kwargs: Any) -> Any:
    """What the result depends on.

    Raises:
        Uncached: more than the arguments' metadata, or it is an argument.
    """
    schema = func._given_schema
    if getattr(func, "kernel", None) is not None or schema is None or func.namespace != "aten":
        raise Uncached("non-builtin")
    if any(tag.name == "inplace_view" for tag in func.tags):
        raise Uncached("inplace view")
    if schema.is_mutable or func.is_view:
        raise Uncached("results that are arguments")
    pending = asked.get()
    if pending is not None and any(type(value) is list for value in pending[3].values()):
        raise Uncached("saved values")  # which the kernel puts into a parameter
    return (func, dtypes.get_default_dtype(), inference.get(), devices.ambient[0], _part(args),
            tuple((name, _part(value)) for name, value in kwargs.items()))


def _part(x: Any) -> Any:
    cls = type(x)
    if cls in _VALUES:
        return cls, x
    if isinstance(x, Tensor):
        array = x._array
        return array.shape, array.strides, array.dtype, bits_of(array), address(array) - address(owner(array))
    if cls in (list, tuple):
        return cls, tuple(map(_part, x))
    raise Uncached(f"an argument of type {cls.__name__}")


def _entry(result: Any, args: Any) -> Any:
    """What makes a result again; None for one that is no tensor, or shares memory with an argument."""
    kind = type(result) if type(result) in (list, tuple) else None
    outs = [result] if kind is None else list(result)
    if not all(type(x) is Tensor for x in outs):
        return None
    memory = {id(owner(x._array)) for x in _tensors(args)}
    if any(id(owner(x._array)) in memory or bits_of(x._array) != (False, False) for x in outs):
        return None
    return kind, [(x._array.shape, x._array.dtype, element_strides(x._array)) for x in outs]


def _tensors(args: Any) -> list[Any]:
    return [x for each in args for x in (each if isinstance(each, (list, tuple)) else (each,)) if isinstance(x, Tensor)]


#: the results of all modes
CACHE = FakeTensorCache()

__all__ = ["CACHE", "DispatchCacheInfo"]
