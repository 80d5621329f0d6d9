"""Which names `load` trusts with `weights_only=True`: PyTorch's list, and what a program adds to it."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from functools import cache
from typing import Any

from .. import dtypes
from .._tensor import Parameter, Tensor, pickling
from .._tensor.creation.typed_constructors import TYPES
from .._tensor.storage import TypedStorage, UntypedStorage, storage_name
from ..devices import device
from ..shapes import Size
from . import names

#: modules that no list makes safe
BLOCKED = ("sys", "os", "posix", "nt")

#: names that PyTorch trusts and flambeau does not have
_ABSENT = frozenset(f"torch.{name}" for name in (
    "quint8", "qint8", "qint32", "quint4x2", "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16",
    "complex32", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "float8_e8m0fnu",
    "float4_e2m1fn_x2",
    *(f"uint{bits}" for bits in range(1, 8)), *(f"int{bits}" for bits in range(1, 8)),
    "per_tensor_affine", "per_tensor_symmetric", "per_channel_affine", "per_channel_symmetric",
    "per_channel_affine_float_qparams", "QUInt8Storage", "QInt8Storage", "QInt32Storage", "QUInt4x2Storage",
    "QUInt2x4Storage"))

_added: set[Any] = set()


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Trust these functions and classes, or pairs of one and its full name in the file.

    >>> import flambeau as torch
    >>> torch.serialization.add_safe_globals([torch.nn.Linear])
    >>> torch.serialization.get_safe_globals()
    [<class 'flambeau.nn.modules.linear.Linear'>]
    >>> torch.serialization.clear_safe_globals()
    """
    _added.update(safe_globals)


def get_safe_globals() -> list[Any]:
    """What a program has added."""
    return list(_added)


def clear_safe_globals() -> None:
    """Trust only PyTorch's list again."""
    _added.clear()


class safe_globals:
    """A block in which these functions and classes are trusted too."""

    def __init__(self, safe_globals: Iterable[Any]) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        add_safe_globals(self.safe_globals)

    def __exit__(self, *exception: Any) -> None:
        _added.difference_update(self.safe_globals)


def added() -> dict[str, Any]:
    """Full name -> what a program has added.

    Raises:
        ValueError, TypeError: a pair is not one of an object and a text.
    """
    found = {}
    for each in _added:
        if isinstance(each, tuple):
            if len(each) != 2:
                raise ValueError("Expected tuple of length 2 (global, str of callable full path), but got tuple of "
                                 f"length: {len(each)}")
            each, name = each
            if type(name) is not str:
                raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(name)}")
        else:
            name = ".".join(names.spelled(each) or (each.__module__, each.__qualname__))
        found[name] = each
    return found


@cache
def trusted() -> dict[str, Any]:
    """Full name -> what PyTorch's list has."""
    from _codecs import encode

    found: dict[str, Any] = {
        "collections.OrderedDict": OrderedDict, "collections.Counter": Counter,
        "torch.nn.parameter.Parameter": Parameter, "torch.serialization._get_layout": names._get_layout,
        "torch.Size": Size, "torch.Tensor": Tensor, "torch.device": device,
        "_codecs.encode": encode, "builtins.bytearray": bytearray, "builtins.set": set, "builtins.complex": complex,
        "torch.storage.TypedStorage": TypedStorage, "torch.storage.UntypedStorage": UntypedStorage,
        "torch._tensor._rebuild_from_type_v2": pickling._rebuild_from_type_v2,
    }
    found.update((f"torch.{d.name}", d) for d in dtypes.ALL)
    found.update((f"torch.{name}", kind) for name, kind in TYPES.items())
    for d in dtypes.ALL:
        if d not in dtypes.WIDE_UNSIGNED:
            found[f"torch.{storage_name(d)}"] = found[f"torch.cuda.{storage_name(d)}"] = names.storage_type(d)
    found.update((f"torch._utils.{name}", call) for name, call in pickling.REBUILDERS.items())
    return found


def lookup(name: str) -> Any:
    """What a trusted full name stands for.

    Raises:
        KeyError: it is not trusted.
        NotImplementedError: PyTorch trusts it and flambeau does not have it.
    """
    if name in trusted():
        return trusted()[name]
    if name in (mine := added()):
        return mine[name]
    if name in _ABSENT:
        raise NotImplementedError(f"the file holds {name}, which flambeau does not have")
    raise KeyError(name)


def is_safe(obj: Any) -> bool:
    """Whether an object is one that a trusted name stands for."""
    return any(obj is each for each in trusted().values()) or any(obj is each for each in added().values())


def all_names() -> set[str]:
    """All trusted names."""
    return {*trusted(), *added(), *_ABSENT}
