"""The globals that `load` allows with `weights_only=True`: PyTorch's list, and those that a program adds."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any

from .. import dtypes
from .._tensor import Parameter, Tensor
from .._tensor.creation.typed_constructors import TYPES
from .._tensor.memory import pickling
from .._tensor.memory.storage import TypedStorage, UntypedStorage, storage_name
from ..devices import device
from ..shapes import Size
from . import names

#: modules whose members are never allowed
BLOCKED = ("sys", "os", "posix", "nt")

#: names that PyTorch allows and flambeau does not have
_UNSUPPORTED = frozenset(f"torch.{name}" for name in (
    "quint8", "qint8", "qint32", "quint4x2", "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16",
    *(f"uint{bits}" for bits in range(1, 8)), *(f"int{bits}" for bits in range(1, 8)),
    "per_tensor_affine", "per_tensor_symmetric", "per_channel_affine", "per_channel_symmetric",
    "per_channel_affine_float_qparams", "QUInt8Storage", "QInt8Storage", "QInt32Storage", "QUInt4x2Storage",
    "QUInt2x4Storage"))

_added: set[Any] = set()
#: globals of modules that are imported when they are first used, which no list shows
_of_modules: set[Any] = set()


def allow_globals(safe_globals: Iterable[Any]) -> None:
    """Allow functions and classes of a module of this package, for good.

    Args:
        safe_globals: functions and classes.
    """
    _of_modules.update(safe_globals)


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Allow functions and classes in files that are loaded with `weights_only=True`.

    Args:
        safe_globals: functions and classes, or (object, qualified name in the file) pairs.

    >>> import flambeau as torch
    >>> torch.serialization.add_safe_globals([torch.nn.Linear])
    >>> torch.serialization.get_safe_globals()
    [<class 'flambeau.nn.modules.linear.Linear'>]
    >>> torch.serialization.clear_safe_globals()
    """
    _added.update(safe_globals)


def get_safe_globals() -> list[Any]:
    """The globals that were added.

    >>> import flambeau as torch
    >>> torch.serialization.get_safe_globals()
    []
    """
    return list(_added)


def clear_safe_globals() -> None:
    """Remove all globals that were added.

    >>> import flambeau as torch
    >>> torch.serialization.add_safe_globals([torch.nn.Linear])
    >>> torch.serialization.clear_safe_globals()
    >>> torch.serialization.get_safe_globals()
    []
    """
    _added.clear()


class safe_globals:
    """A context manager that allows functions and classes, as `add_safe_globals` does.

    Args:
        safe_globals: functions and classes, or (object, qualified name in the file) pairs.

    >>> import io
    >>> import flambeau as torch
    >>> file = io.BytesIO()
    >>> torch.save(torch.nn.Tanh(), file)
    >>> _ = file.seek(0)
    >>> with torch.serialization.safe_globals([torch.nn.Tanh]):
    ...     torch.load(file)
    Tanh()
    """

    def __init__(self, safe_globals: Iterable[Any]) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        add_safe_globals(self.safe_globals)

    def __exit__(self, *exception: Any) -> None:
        _added.difference_update(self.safe_globals)


def added_globals() -> dict[str, Any]:
    """Qualified name -> global that was added.

    Raises:
        ValueError: a tuple does not have two items.
        TypeError: the second item is not a string.
    """
    by_name = {}
    for item in (*_of_modules, *_added):
        if isinstance(item, tuple):
            if len(item) != 2:
                raise ValueError("Expected tuple of length 2 (global, str of callable full path), but got tuple of "
                                 f"length: {len(item)}")
            item, name = item
            if type(name) is not str:
                raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(name)}")
        else:
            name = ".".join(names.torch_name(item) or (item.__module__, item.__qualname__))
        by_name[name] = item
    return by_name


class _DimRange:
    """The bounds of a dynamic size in PyTorch's files of nested tensors; nothing reads them."""

    def __setstate__(self, state: Any) -> None:
        self.dim, self.min, self.max = state


@cache
def default_globals() -> dict[str, Any]:
    """Qualified name -> global of PyTorch's list."""
    from _codecs import encode

    by_name: dict[str, Any] = {
        "collections.OrderedDict": OrderedDict, "collections.Counter": Counter,
        "torch.nn.parameter.Parameter": Parameter, "torch.serialization._get_layout": names._get_layout,
        "torch.Size": Size, "torch.Tensor": Tensor, "torch.device": device,
        "_codecs.encode": encode, "builtins.bytearray": bytearray, "builtins.set": set, "builtins.complex": complex,
        "torch.storage.TypedStorage": TypedStorage, "torch.storage.UntypedStorage": UntypedStorage,
        "torch._tensor._rebuild_from_type_v2": pickling._rebuild_from_type_v2,
    }
    by_name.update((f"torch.{d.name}", d) for d in dtypes.ALL)
    by_name.update((f"torch.{name}", kind) for name, kind in TYPES.items())
    for d in dtypes.ALL:
        if d not in dtypes.WITHOUT_STORAGE_CLASS:
            by_name[f"torch.{storage_name(d)}"] = by_name[f"torch.cuda.{storage_name(d)}"] = names.storage_type(d)
    by_name["torch._dynamo.decorators._DimRange"] = _DimRange
    by_name.update((f"torch._utils.{name}", call) for name, call in pickling.REBUILDERS.items())
    return by_name


def lookup(name: str) -> Any:
    """The global of an allowed qualified name.

    Raises:
        KeyError: it is not allowed.
        NotImplementedError: PyTorch allows it, but flambeau does not have it.
    """
    if name in default_globals():
        return default_globals()[name]
    if name in (extra := added_globals()):
        return extra[name]
    module, _, short = name.rpartition(".")
    if module == "torch.nested._internal.nested_tensor" and short in ("NestedTensor", "_rebuild_njt"):
        value = getattr(import_module(f"{__package__.partition('.')[0]}{module.removeprefix('torch')}"), short)
        _of_modules.add((value, name))
        return value
    if name in _UNSUPPORTED:
        raise NotImplementedError(f"the file contains {name}, which flambeau does not have")
    raise KeyError(name)


def is_safe(obj: Any) -> bool:
    """Whether an object is an allowed global."""
    return (any(obj is item for item in default_globals().values())
            or any(obj is item for item in added_globals().values()))


def all_names() -> set[str]:
    """The qualified names of all allowed globals."""
    return {*default_globals(), *added_globals(), *_UNSUPPORTED}
