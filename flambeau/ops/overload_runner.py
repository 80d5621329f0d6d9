"""The interface of overloads to what calls them: the tensor layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..lazy_modules.registration import LateRegistration


class OverloadRunner(LateRegistration):
    """How overloads are called; the tensor layer sets it."""

    call: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]  # overload, arguments, keywords
    resolve: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]  # packet, arguments, keywords -> overload
    overridden: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]  # NotImplemented: by nobody
    aten: Callable[[], Any]  # the namespace of PyTorch's operators
    composites: Callable[[], dict[str, Callable[..., Any]]] = dict  # name -> kernel of what layers above compose
    public: Callable[[str], Callable[..., Any] | None]  # a function of `torch` that layers above define
    has_kernel: Callable[[str, Any], bool]  # whether the operator of a name has a kernel for a dispatch key


runner = OverloadRunner()

__all__ = ["OverloadRunner", "runner"]
