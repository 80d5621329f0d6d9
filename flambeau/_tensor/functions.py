"""The functions of tensors under PyTorch's names: the namespace `xp` of operator declarations on tensors.

Declared operators come from the registry. The modules of `lazy_modules.FUNCTIONS` add functions whose arguments a
declaration cannot express; where one has the name of an operator, it replaces the generated function and dispatches to
the operator. A function is made, and its module imported, when it is first looked up.
"""

from __future__ import annotations

import importlib
import sys
import threading
from types import FunctionType
from typing import Any

from ..engine.tensor_interface import layer
from ..lazy_modules import FUNCTIONS, OPERATOR_NAMES
from ..ops.declare import REGISTRY
from .argument_errors import guards
from .dispatch.public_functions import public_function
from .overriding.entry_points import another_function
from .overriding.other_objects import reports_other_objects

_namespace = globals()
_package = __name__.rpartition(".")[0]
_internal = frozenset(_namespace) | {"load_all", "load_module"}  # names of this module that are no functions of tensors

#: name -> the module that defines the function
_module_of = {name: module for module, names in FUNCTIONS.items() for name in names.split()}
#: another name of an operator's function -> the operator's key
_aliases = dict(entry.split("=") for entry in OPERATOR_NAMES["aliases"].split())
#: names whose function has another name in its module: `conj` of derivatives computes, `torch.conj` is a view
_DEFINED_AS = {"conj": "_computed_conj", "permute": "permute_to", "reshape": "reshape_to", "tile": "tile_to"}
_module_of["conj"] = "pointwise.complex"
#: modules whose functions are in the namespace, and whether all functions are
_loaded: set[str] = set()
_complete = [False]
_lock = threading.RLock()

#: functions that read attributes of their arguments before anything checks them; those that are called most report
#: other objects than tensors themselves
_READ_ATTRIBUTES = frozenset("""
    adaptive_avg_pool1d adaptive_max_pool1d adjoint alpha_dropout alpha_dropout_ atleast_1d atleast_2d
    atleast_3d avg_pool1d bilinear binomial broadcast_tensors broadcast_to cartesian_prod cdist chain_matmul
    cholesky chunk combinations conj conv_tbc cross detach_copy diag diagflat dropout dropout_ embedding
    feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_ full_like ger group_norm
    hash_tensor imag inner inverse is_conj is_inference is_neg is_same_size is_signed istft kron logdet lu
    lu_unpack matrix_power max_pool1d max_pool1d_with_indices max_pool2d max_pool3d meshgrid multinomial nanmean
    nansum native_dropout norm_except_dim outer pdist pinverse poisson qr ravel real resize_as_ resolve_conj
    resolve_neg rrelu rrelu_ segment_reduce select slice_inverse svd take_along_dim tile to_dlpack
    triangular_solve unflatten unique unique_consecutive unsafe_chunk vander zero_
""".split())  # noqa: SIM905
_GUARDED = frozenset(guards.GUARDED_FUNCTIONS)


def load_module(module: str) -> None:
    """Import a module of `lazy_modules.FUNCTIONS`, and put its functions into the namespace.

    Other names of a function become functions of their own, which handlers of `__torch_function__` tell apart.
    """
    if module in _loaded:
        return
    loaded = importlib.import_module(f"{_package}.{module}")
    names = [name for name, other in _module_of.items() if other == module]
    own = {name: getattr(loaded, _DEFINED_AS.get(name, name)) for name in names}
    elsewhere = {value.__name__ for value in own.values() if value.__class__ is FunctionType} - own.keys()
    originals = {name: __getattr__(name) for name in elsewhere if name in _module_of or name in REGISTRY}
    with _lock:
        if module in _loaded:
            return
        made: dict[str, Any] = dict(own)
        for name, value in own.items():
            if name in _READ_ATTRIBUTES:
                made[name] = _reporting(value, name)
            elif name in _DEFINED_AS:
                value.__module__, value.__name__, value.__qualname__ = __name__, name, name  # for pickles
        originals |= made
        for name, value in made.items():
            if value.__class__ is FunctionType and value.__name__ != name and originals.get(value.__name__) is value:
                made[name] = another_function(value, name)
                made[name].__module__ = __name__
        for name in made.keys() & _GUARDED:
            guards.guard(made[name], "torch", name)
        for name, value in made.items():
            _namespace.setdefault(name, value)
        _loaded.add(module)


def _reporting(function: Any, name: str) -> Any:
    call = reports_other_objects(function, name)
    call.__module__, call.__name__, call.__qualname__ = __name__, name, name  # for pickles
    return call


def _load_operator(key: str) -> None:
    """Put the functions of a declared operator into the namespace, under all of its names."""
    op = REGISTRY[key]
    call = public_function(op)
    with _lock:
        made: dict[str, Any] = {name: call if name == key else another_function(call, name, name)
                                for name in (key, *op.aliases) if name not in _module_of and name not in _namespace}
        for name in made.keys() & _READ_ATTRIBUTES:
            made[name] = _reporting(made[name], name)
        for name in made.keys() & _GUARDED:
            guards.guard(made[name], "torch", name)
        _namespace.update(made)


def load_all() -> dict[str, Any]:
    """Import all modules of functions and operators; returns the namespace."""
    if not _complete[0]:
        for key in REGISTRY:
            _load_operator(key)
        for module in FUNCTIONS:
            load_module(module)
        _complete[0] = True
    return _namespace


layer.functions = sys.modules[__name__]


def __getattr__(name: str) -> Any:
    """Functions that have not been used yet, and in-place operators as functions, `relu_(x)`."""
    module = _module_of.get(name)
    if module is not None:
        load_module(module)
        return _namespace[name]
    key = _aliases.get(name, name)
    if key in REGISTRY:
        _load_operator(key)
        return _namespace[name]
    if name.endswith("_") and not name.startswith("_"):
        from .dispatch.public_functions import inplace_function
        from .overriding.entry_points import another_function
        from .tensor import Tensor

        result = getattr(Tensor, name, None)
        if result is not None:
            result = another_function(result, name, name)
            if name in guards.GUARDED_METHODS:
                guards.guard(result, "torch", name)  # whose arguments count the tensor
        elif "inplace_function" in getattr(REGISTRY.get(name[:-1]), "expose", ()):
            result = inplace_function(REGISTRY[name[:-1]])
        if result is not None:
            return _namespace.setdefault(name, result)
    raise AttributeError(f"no operator named {name!r}")


def __dir__() -> list[str]:
    return sorted({*_namespace, *_module_of, *_aliases, *REGISTRY.known()})
