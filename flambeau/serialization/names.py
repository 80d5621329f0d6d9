"""Qualified names in files: the mapping between flambeau's classes and functions and their names in PyTorch.

In general `flambeau.x.y` is written as `torch.x.y`; `config` lists the modules whose names differ. PyTorch itself is
never imported.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import Any

from .. import config, dtypes
from .._tensor import Tensor, functions
from .._tensor.creation.typed_constructors import TYPES
from .._tensor.memory.storage import storage_name
from ..devices import layout

_PACKAGE = __name__.partition(".")[0]

#: module in PyTorch -> module in flambeau with its contents, where they differ
_MODULE_IN_FLAMBEAU = {
    "_C": "_tensor.creation.generators", "_C._nn": "nn.functional", "_tensor": "_tensor.memory.pickling",
    "_utils": "_tensor.memory.pickling",
    "autograd.grad_mode": "engine.grad_mode",
    "return_types": "_tensor.return_types",
    "tensor": "_tensor.memory.pickling",  # name of `_tensor` before 1.8
}
#: public modules whose functions are written with the public module's name
_PUBLIC = ("nn.functional", "nn.init", "linalg", "special", "autograd")

_DTYPE_OF = {storage_name(d): d for d in dtypes.ALL if d not in dtypes.WITHOUT_STORAGE_CLASS}


class StorageType:
    """The dtype of a storage in a file: `torch.FloatStorage` for float32.

    Args:
        name: name of the legacy storage class.

    >>> import flambeau as torch
    >>> torch.serialization.StorageType("FloatStorage").dtype
    flambeau.float32
    """

    def __init__(self, name: str) -> None:
        self._dtype = _DTYPE_OF[name]

    @property
    def dtype(self) -> dtypes.dtype:
        """The dtype of the storage's elements."""
        return self._dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"

    def __reduce__(self) -> Any:
        return StorageType, (storage_name(self._dtype),)


@cache
def storage_type(d: dtypes.dtype) -> StorageType:
    """The `StorageType` of a dtype: the same object each time, so that the pickler memoizes it."""
    return StorageType(storage_name(d))


def _get_layout(name: str) -> layout:
    """The layout of a name such as "torch.strided"."""
    return getattr(sys.modules[_PACKAGE], name.rpartition(".")[2])


def torch_name(obj: Any) -> tuple[str, str] | None:
    """PyTorch's (module, qualified name) of a class, function or dtype of flambeau; None for other objects."""
    if isinstance(obj, dtypes.dtype):
        return "torch", obj.name
    if isinstance(obj, StorageType):
        return "torch", storage_name(obj.dtype)
    if not isinstance(obj, (type, FunctionType)):
        return None
    module = (config.module_of(obj) if isinstance(obj, type) else obj.__module__) or ""
    if module.partition(".")[0] != _PACKAGE:
        name = obj.__name__
        return ("torch", name) if TYPES.get(name) is obj else None
    name = obj.__qualname__
    if isinstance(obj, FunctionType):
        public = _public_name(obj)
        if public is not None:
            return public
        if _get_member(sys.modules.get(obj.__module__), name) is not obj:
            return None  # a local function, which cannot be imported
        if name == "_rebuild_from_type_v2":
            return "torch._tensor", name
    return config.name_in_pytorch(module, name), name


def _public_name(function: FunctionType) -> tuple[str, str] | None:
    name = function.__name__
    for place in _PUBLIC:
        module = sys.modules.get(f"{_PACKAGE}.{place}")
        for public in (name, name.removeprefix(f"{place}_")):
            if module is not None and _get_member(module, public) is function:
                return f"torch.{place}", public
    prefix, _, rest = name.partition("_")
    if prefix in _PUBLIC and _get_member(import_module(f"{_PACKAGE}.{prefix}"), rest) is function:
        return f"torch.{prefix}", rest  # `det` is `linalg.det`, and is called `linalg_det`
    functional = sys.modules.get(f"{_PACKAGE}.nn.functional")
    for public, value in vars(functional).items() if functional is not None else ():  # `__name__` may differ
        if value is function:
            return "torch.nn.functional", public
    if function in (_get_member(functions, name), _get_member(sys.modules[_PACKAGE], name)):
        return "torch", name
    if _get_member(Tensor, name) is function:
        return "torch", f"Tensor.{name}"
    return None


def _get_member(place: Any, name: str) -> Any:
    try:
        return getattr(place, name)
    except AttributeError:
        return None


def is_torch_module(module: str) -> bool:
    """Whether a module name is `torch` or below it."""
    return module == "torch" or module.startswith("torch.")


def resolve(module: str, name: str) -> Any:
    """The object of flambeau that corresponds to a qualified name of PyTorch.

    Raises:
        AttributeError: flambeau has no such object.
    """
    place = module[len("torch."):]
    if place == "_C" and name == "_VariableFunctionsClass":
        return functions
    candidates = [_MODULE_IN_FLAMBEAU.get(place, place), place,
                  *(ours for ours, theirs in config.IN_PYTORCH.items() if theirs == place)]
    if place.partition(".")[0] in ("nn", "optim"):
        candidates.append(place.partition(".")[0])  # the class may be in another file of the package
    for candidate in candidates:
        try:
            home = import_module(f"{_PACKAGE}.{candidate}" if candidate else _PACKAGE)
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith(_PACKAGE):
                raise
            continue
        resolved = home
        try:
            for part in name.split("."):
                resolved = getattr(resolved, part)
        except AttributeError:
            continue
        return resolved
    loaded = sys.modules.get(module) if sys.modules.get("torch") is sys.modules[_PACKAGE] else None
    if hasattr(loaded, name):  # a module below `torch` that another package has added
        return getattr(loaded, name)
    raise AttributeError(f"{_PACKAGE} has no '{module}.{name}', which the file refers to")
