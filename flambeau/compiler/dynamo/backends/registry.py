"""`torch._dynamo.backends.registry`: registration of compiler backends, and the functions behind their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...backend_registry import (
    BUILT_IN,
    backend_named,
    list_backends,
    register_backend,
    register_debug_backend,
    register_experimental_backend,
)


def lookup_backend(compiler_fn: Any) -> Callable[..., Any]:
    """Return the function of a backend: what a name stands for, or the function itself.

    Raises:
        RuntimeError: there is none of this name (`torch._dynamo.exc.InvalidBackend`).

    >>> import flambeau as torch
    >>> graph = torch.fx.symbolic_trace(lambda x: x + 1)
    >>> torch._dynamo.lookup_backend("inductor")(graph, [torch.ones(2)])(torch.ones(2))
    tensor([2., 2.])
    """
    found: Any = backend_named(compiler_fn) if isinstance(compiler_fn, str) else compiler_fn
    if not isinstance(found, str):
        return found
    if not BUILT_IN[found]:
        return _run_eagerly
    from ...inductor.compile_fx import compile_fx

    return compile_fx


def _run_eagerly(gm: Any, fake_tensor_inputs: Any) -> Any:
    """The backend that runs a graph's operators one by one."""
    return gm.forward


__all__ = ["list_backends", "lookup_backend", "register_backend", "register_debug_backend",
           "register_experimental_backend"]
