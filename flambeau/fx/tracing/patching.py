"""Functions and methods that are replaced while tracing, so that their calls become nodes."""

from __future__ import annotations

import builtins
import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .._compatibility import compatibility
from ..node import map_aggregate
from ..proxy import Proxy

#: (id of the globals, name) -> globals: the functions that `wrap` has registered
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
#: (class, name) of methods that become nodes
_wrapped_methods_to_patch: list[tuple[type, str]] = []


def _find_proxy(*objects_to_search: Any) -> Any:
    found: list[Any] = []
    map_aggregate(objects_to_search, lambda x: found.append(x) if isinstance(x, Proxy) else None)
    return found[-1] if found else None


def _create_wrapped_func(orig_fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose calls with proxies become nodes."""
    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        result = proxy.tracer.create_proxy("call_function", orig_fn, args, kwargs)
        result.node.meta["is_wrapped"] = True
        return result

    return wrapped


def _create_wrapped_method(cls: type, name: str) -> Callable[..., Any]:
    """The method, whose calls with proxies become nodes."""
    orig_fn = getattr(cls, name)

    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


class _Patch(NamedTuple):
    """A replaced global or attribute."""

    owner: Any
    name: str
    former: Any
    new: Any

    def patch(self) -> None:
        if isinstance(self.owner, dict):
            self.owner[self.name] = self.new
        else:
            setattr(self.owner, self.name, self.new)

    def revert(self) -> None:
        if not isinstance(self.owner, dict):
            if self.former is _MISSING:
                delattr(self.owner, self.name)
            else:
                setattr(self.owner, self.name, self.former)
        elif self.former is _MISSING:
            del self.owner[self.name]
        else:
            self.owner[self.name] = self.former


_MISSING = object()


class _Patcher:
    """Replaces globals and methods until its end."""

    def __init__(self) -> None:
        self.patches_made: list[_Patch] = []
        self.visited: set[int] = set()

    def patch(self, frame_dict: dict[str, Any], name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Replace a global."""
        new_fn.__fx_already_patched = deduplicate
        if name not in frame_dict and hasattr(builtins, name):
            self._add(_Patch(frame_dict, name, _MISSING, new_fn))
        elif not getattr(frame_dict[name], "__fx_already_patched", False):
            self._add(_Patch(frame_dict, name, frame_dict[name], new_fn))

    def patch_method(self, cls: type, name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Replace a method."""
        new_fn.__fx_already_patched = deduplicate
        if not getattr(getattr(cls, name), "__fx_already_patched", False):
            self._add(_Patch(cls, name, vars(cls).get(name, _MISSING), new_fn))

    def _add(self, patch: _Patch) -> None:
        self.patches_made.append(patch)
        patch.patch()

    def visit_once(self, thing: Any) -> bool:
        """Whether this is the first call with an object."""
        if id(thing) in self.visited:
            return False
        self.visited.add(id(thing))
        return True

    def revert_all_patches(self) -> list[_Patch]:
        """Undo all replacements; they are remembered."""
        for patch in reversed(self.patches_made):
            patch.revert()
        return self.patches_made

    def reapply_all_patches(self) -> list[_Patch]:
        """Make the remembered replacements again."""
        for patch in self.patches_made:
            patch.patch()
        return self.patches_made

    def __enter__(self) -> _Patcher:
        return self

    def __exit__(self, *exception: object) -> None:
        while self.patches_made:
            self.patches_made.pop().revert()
        self.visited.clear()


CURRENT_PATCHER: _Patcher | None = None


@contextlib.contextmanager
def _new_patcher() -> Iterator[_Patcher]:
    global CURRENT_PATCHER
    former = CURRENT_PATCHER
    patcher = CURRENT_PATCHER = _Patcher()
    try:
        yield patcher
    finally:
        patcher.revert_all_patches()
        CURRENT_PATCHER = former


@contextlib.contextmanager
def _maybe_revert_all_patches() -> Iterator[None]:
    patcher = CURRENT_PATCHER
    if patcher is not None:
        patcher.revert_all_patches()
    try:
        yield
    finally:
        if patcher is not None:
            patcher.reapply_all_patches()


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    """Replace the functions that `wrap` has registered."""
    for (_, name), frame_dict in _wrapped_fns_to_patch.copy().items():
        if name not in frame_dict and hasattr(builtins, name):
            orig_fn = getattr(builtins, name)
        else:
            orig_fn = frame_dict[name]
        patcher.patch(frame_dict, name, _create_wrapped_func(orig_fn))
    for cls, name in _wrapped_methods_to_patch:
        patcher.patch_method(cls, name, _create_wrapped_method(cls, name))


def _autowrap_check(patcher: _Patcher, frame_dict: dict[str, Any], function_ids: set[int]) -> None:
    """Replace those of some functions that are globals."""
    if patcher.visit_once(frame_dict):
        for name, value in list(frame_dict.items()):
            if not name.startswith("_") and callable(value) and id(value) in function_ids:
                patcher.patch(frame_dict, name, _create_wrapped_func(value))


@compatibility(is_backward_compatible=True)
def wrap(fn_or_name: Any) -> Any:
    """Register a function of the calling module whose calls become nodes, instead of being traced through.

    Args:
        fn_or_name: the function, or its name; also a decorator.

    Raises:
        NotImplementedError: it is not called at the top level of a module.
        RuntimeError: the argument is neither callable nor a string.

    >>> import flambeau as torch
    >>> torch.fx.wrap("len")
    'len'
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe()
    caller = frame.f_back if frame is not None else None
    if caller is None:
        raise AssertionError("currentframe.f_back is None")
    if caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(caller.f_globals), name] = caller.f_globals
    return fn_or_name


__all__ = ["wrap"]
