"""The registry of compiler backends: their names, their tags, and the functions that `compile(backend=name)` calls."""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .errors import InvalidBackend

if TYPE_CHECKING:
    from importlib import metadata

#: backends that `compile` runs itself, by name: whether they compile
BUILT_IN = {"inductor": True, "aot_eager": False, "eager": False}
#: the group of entry points under which installed packages offer backends
ENTRY_POINTS = "torch_dynamo_backends"
_DEBUG = ("debug",)
#: debugging backends: functions of `dynamo.backends.debugging`, which is imported when one is used
_DEBUGGING = frozenset(("aot_eager_decomp_partition", "aot_eager_default_partitioner", "aot_ts",
                        "eager_noexcept", "pre_dispatch_eager", "ts"))

_functions: dict[str, Callable[..., Any]] = {}
_entry_points: dict[str, metadata.EntryPoint] = {}
_lock = threading.Lock()
_searched: list[bool] = []


def register_backend(compiler_fn: Callable[..., Any] | None = None, name: str | None = None,
                     tags: Sequence[str] = ()) -> Any:
    """Register a function as a backend, which `compile` then finds by its name.

    Args:
        compiler_fn: gets a graph, a `GraphModule`, and examples of its inputs, and returns a function. None:
            return a decorator.
        name: the backend's name; by default the function's.
        tags: what `list_backends(exclude_tags=)` leaves it out by.

    Raises:
        AssertionError: `compiler_fn` cannot be called, or the name is taken.

    >>> import flambeau as torch
    >>> @torch._dynamo.register_backend(name="example")
    ... def backend(graph, inputs):
    ...     return graph.forward
    >>> torch.compile(lambda x: x + 1, backend="example")(torch.ones(2))
    tensor([2., 2.])
    """
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    if not callable(compiler_fn):
        raise AssertionError(f"compiler_fn must be callable, got {type(compiler_fn)}")
    name = name or compiler_fn.__name__
    with _lock:
        if name in _functions or name in BUILT_IN or name in _DEBUGGING:
            raise AssertionError(f"duplicate name: {name}")
        compiler_fn._tags = tuple(tags)  # type: ignore[attr-defined]
        _functions[name] = compiler_fn
    return compiler_fn


register_debug_backend = functools.partial(register_backend, tags=_DEBUG)
register_experimental_backend = functools.partial(register_backend, tags=("experimental",))


def _search() -> None:
    """Find the backends that installed packages offer; they are loaded when one is used."""
    if not _searched:
        from importlib import metadata

        _searched.append(True)
        _entry_points.update({each.name: each for each in metadata.entry_points(group=ENTRY_POINTS)})


def backend_named(name: Any) -> Any:
    """The function of a backend's name; the name itself of a built-in one.

    Raises:
        InvalidBackend: there is none of this name.
    """
    if name in BUILT_IN:
        return name
    if name in _DEBUGGING and name not in _functions:
        module = importlib.import_module(f"{__package__}.dynamo.backends.debugging")
        return getattr(module, name)
    if name not in _functions:
        _search()
        if name not in _entry_points:
            raise InvalidBackend(name)
        register_backend(_entry_points[name].load(), name)
    return _functions[name]


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Return the names of the backends, without the debugging backends, which run everything eagerly.

    Args:
        exclude_tags: tags of backends to leave out: "debug" stands for "eager" and "aot_eager". None: list all.

    >>> import flambeau as torch
    >>> "inductor" in torch.compiler.list_backends(), "eager" in torch.compiler.list_backends()
    (True, False)
    >>> "eager" in torch.compiler.list_backends(None)
    True
    """
    _search()
    excluded = set(exclude_tags or ())
    tags = {name: () if compiles else _DEBUG for name, compiles in BUILT_IN.items()}
    tags |= dict.fromkeys(_DEBUGGING, _DEBUG) | dict.fromkeys(_entry_points, ())
    tags |= {name: getattr(function, "_tags", ()) for name, function in _functions.items()}
    return sorted(name for name, of in tags.items() if excluded.isdisjoint(of))


__all__ = ["BUILT_IN", "backend_named", "list_backends", "register_backend", "register_debug_backend",
           "register_experimental_backend"]
