"""Names in files: every class and function of flambeau is called there as PyTorch calls it, and found by that name.

Mostly `flambeau.x.y` is `torch.x.y`; the tables say where flambeau keeps things elsewhere. PyTorch
itself is never imported.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import Any

from .. import dtypes
from .._tensor import Tensor, functions
from .._tensor.creation.typed_constructors import TYPES
from .._tensor.storage import storage_name
from ..devices import layout

_HOME = __name__.partition(".")[0]

#: flambeau's module -> PyTorch's, where they differ
_MODULES = {
    "engine.grad_mode": "autograd.grad_mode", "nn.modules.attention": "nn.modules.activation",
    "nn.modules.parameter_containers": "nn.modules.container", "nn.modules.rnn_cells": "nn.modules.rnn",
    "nn.parallel": "nn.parallel.data_parallel", "serialization.names": "serialization",
    "_tensor.parameter": "nn.parameter", "_tensor.creation.random": "_C", "_tensor.pickling": "_utils",
    "_tensor.return_types": "return_types",
}
#: where to look for what a module of PyTorch holds, if not in the module of that name
_INSTEAD = {
    "_C": "_tensor.creation.random", "_C._nn": "nn.functional", "_tensor": "_tensor.pickling",
    "_utils": "_tensor.pickling",
    "autograd.grad_mode": "engine.grad_mode", "nn.parallel.data_parallel": "nn.parallel",
    "return_types": "_tensor.return_types",
    "tensor": "_tensor.pickling",  # which was `_tensor` before 1.8
}
#: public modules whose functions are written under the public name
_PUBLIC = ("nn.functional", "nn.init", "linalg", "special", "autograd")

_BY_NAME = {storage_name(d): d for d in dtypes.ALL if d not in dtypes.WIDE_UNSIGNED}


class StorageType:
    """What stands in a file for a storage's dtype: `torch.FloatStorage` for float32."""

    def __init__(self, name: str) -> None:
        self._dtype = _BY_NAME[name]

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
    """The one object that stands for storages of a dtype while a file is written."""
    return StorageType(storage_name(d))


def _get_layout(name: str) -> layout:
    """The layout of a name, as "torch.strided"."""
    return getattr(sys.modules[_HOME], name.rpartition(".")[2])


def spelled(obj: Any) -> tuple[str, str] | None:
    """PyTorch's (module, name) of a class, function or dtype of flambeau's; None for anything else."""
    if isinstance(obj, dtypes.dtype):
        return "torch", obj.name
    if isinstance(obj, StorageType):
        return "torch", storage_name(obj.dtype)
    if not isinstance(obj, (type, FunctionType)):
        return None
    home, _, module = (obj.__module__ or "").partition(".")
    if home != _HOME:
        name = obj.__name__
        return ("torch", name) if TYPES.get(name) is obj else None
    name = obj.__qualname__
    if isinstance(obj, FunctionType):
        public = _public_place(obj)
        if public is not None:
            return public
        if _member(sys.modules.get(obj.__module__), name) is not obj:
            return None  # made by another function: nothing names it
        if name == "_rebuild_from_type_v2":
            return "torch._tensor", name
    module = _MODULES.get(module, module)
    return f"torch.{module}" if module else "torch", name


def _public_place(function: FunctionType) -> tuple[str, str] | None:
    name = function.__name__
    for place in _PUBLIC:
        module = sys.modules.get(f"{_HOME}.{place}")
        for public in (name, name.removeprefix(f"{place}_")):
            if module is not None and _member(module, public) is function:
                return f"torch.{place}", public
    prefix, _, rest = name.partition("_")
    if prefix in _PUBLIC and _member(import_module(f"{_HOME}.{prefix}"), rest) is function:
        return f"torch.{prefix}", rest  # `det` is `linalg.det`, and bears its name
    neural = sys.modules.get(f"{_HOME}.nn.functional")
    for public, value in vars(neural).items() if neural is not None else ():  # some bear another name than their public
        if value is function:
            return "torch.nn.functional", public
    if _member(functions, name) is function:
        return "torch", name
    if _member(Tensor, name) is function:
        return "torch", f"Tensor.{name}"
    return None


def _member(place: Any, name: str) -> Any:
    try:
        return getattr(place, name)
    except AttributeError:
        return None


def is_torchs(module: str) -> bool:
    """Whether a module's name is one of PyTorch's."""
    return module == "torch" or module.startswith("torch.")


def find(module: str, name: str) -> Any:
    """What flambeau has for a name of PyTorch's.

    Raises:
        AttributeError: nothing.
    """
    place = module[len("torch."):]
    if place == "_C" and name in ("TensorBase", "_TensorBase"):
        return Tensor
    if place == "_C" and name == "_VariableFunctionsClass":
        return functions
    roots = [_INSTEAD.get(place, place), place, *(home for home, theirs in _MODULES.items() if theirs == place)]
    if place.partition(".")[0] in ("nn", "optim"):
        roots.append(place.partition(".")[0])  # whatever file the class lies in
    for root in roots:
        try:
            home = import_module(f"{_HOME}.{root}" if root else _HOME)
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith(_HOME):
                raise
            continue
        found = home
        try:
            for part in name.split("."):
                found = getattr(found, part)
        except AttributeError:
            continue
        return found
    raise AttributeError(f"{_HOME} has no '{module}.{name}', which the file asks for")
