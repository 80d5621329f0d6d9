"""`torch.utils._functools`: results of methods that are kept by their object."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def cache_method(f: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose results are kept, by its arguments, as long as the object lives.

    >>> class A:
    ...     @cache_method
    ...     def f(self, x):
    ...         print("computed")
    ...         return x + 1
    >>> a = A()
    >>> a.f(1), a.f(1)
    computed
    (2, 2)
    """
    name = f"_cache_method_{f.__name__}"

    @functools.wraps(f)
    def wrap(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            raise AssertionError("cache_method does not accept keyword arguments")
        known = getattr(self, name, None)
        if known is None:
            known = {}
            setattr(self, name, known)
        if args not in known:
            known[args] = f(self, *args)
        return known[args]

    return wrap


__all__ = ["cache_method"]
