"""A function written against PyTorch becomes the same function written against the candidate.

PyTorch's operator table holds three kinds of callables: public functions (found again by their path),
methods of Tensor (by name), and small functions that call those (`lambda x: x.T`,
`wrapper_set_seed(torch.randn, ...)`), which are copied with their global names and closures rebound.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

NAMESPACES = (
    "",
    "nn.functional",
    "special",
    "linalg",
    "fft",
    "signal.windows",
    "masked",
    "sparse",
    "nn",
    "autograd",
)
HARNESS = ("torch.testing", "torch.utils")  # code that only drives operators


class Missing(Exception):
    """The candidate has no such name."""


def resolve(root: Any, path: str) -> Any:
    """root.a.b for 'a.b'; Missing names the path where it ends."""
    found = root
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise Missing(f"missing {path}") from None
        except ImportError as error:  # a lazily imported submodule that does not import
            raise Missing(f"missing {path}: {error}") from None
    return found


@functools.cache
def _paths() -> dict[int, str]:
    """Where each of PyTorch's public functions and Tensor methods lives, by identity."""
    paths: dict[int, str] = {}
    for namespace in NAMESPACES:
        holder = resolve(torch, namespace) if namespace else torch
        for name in sorted(dir(holder), key=lambda n: (n.startswith("_"), n)):
            value = getattr(holder, name, None)
            if callable(value):
                paths.setdefault(id(value), f"{namespace}.{name}".lstrip("."))
    for name in dir(torch.Tensor):
        value = getattr(torch.Tensor, name)
        if callable(value) and name not in object.__dict__:
            paths.setdefault(id(value), f"Tensor.{name}")
    return paths


def path_of(function: Any) -> str | None:
    """'nn.functional.relu' for torch.nn.functional.relu; None for what is not PyTorch's own."""
    return _paths().get(id(function))


def rebind(function: Callable | None, module: ModuleType, path: str | None = None) -> Callable | None:
    """The candidate's counterpart of `function`; `path`, where known, says which name was meant."""
    if function is None:
        return None
    if path is not None and _same(path, function):
        return resolve(module, path)
    found = path_of(function)
    if found is not None:
        return resolve(module, found)
    if isinstance(function, functools.partial):
        return functools.partial(rebind(function.func, module), *function.args, **function.keywords)
    if isinstance(function, types.BuiltinFunctionType) and function.__module__ in ("_operator", "builtins"):
        return function
    if isinstance(function, types.FunctionType) and (function.__module__ or "").startswith(HARNESS):
        return _copy(function, module)
    raise Missing(f"no counterpart of {function!r:.80}")


def _same(path: str, function: Any) -> bool:
    try:
        return resolve(torch, path) is function
    except Missing:
        return False


_copies: dict[tuple[Callable, ModuleType], Callable] = {}


def _copy(function: types.FunctionType, module: ModuleType) -> Callable:
    key = function, module
    if key in _copies:
        return _copies[key]
    names = _names(function.__code__)
    scope = {"__builtins__": __builtins__, "__name__": function.__module__}
    copy = types.FunctionType(
        function.__code__,
        scope,
        function.__name__,
        function.__defaults__,
        None if function.__closure__ is None else tuple(map(_cell(module), function.__closure__)),
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    if function.__closure__ is None:
        _copies[key] = copy
    for name in names & function.__globals__.keys():
        scope[name] = _value(function.__globals__[name], module, name)
    return copy


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def _cell(module: ModuleType) -> Callable[[types.CellType], types.CellType]:
    return lambda cell: types.CellType(_value(cell.cell_contents, module))


def _value(value: Any, module: ModuleType, name: str = "") -> Any:
    """What a global or closed-over name should mean in the copy."""
    if name == "wrapper_set_seed":
        return functools.partial(seeded, module)
    if isinstance(value, ModuleType):
        own = value.__name__
        if own == "torch":
            return module
        if own.startswith("torch.") and not own.startswith(HARNESS):
            return resolve(module, own.removeprefix("torch."))
        return value
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return resolve(module, str(value).rpartition(".")[2])
    if isinstance(value, types.FunctionType) and value.__module__ == "contextlib":
        return value
    if callable(value) and (
        path_of(value) is not None or isinstance(value, (types.FunctionType, functools.partial))
    ):
        try:
            return rebind(value, module)
        except Missing as missing:  # the name may be an attribute's, and never be called
            return functools.partial(_absent, missing)
    return value


def _absent(missing: Missing, *args: Any, **kwargs: Any) -> Any:
    raise missing


def seeded(module: ModuleType, operator: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call with the generator in the state that PyTorch's samples of random operators assume."""
    module.manual_seed(42)
    return operator(*args, **kwargs)
