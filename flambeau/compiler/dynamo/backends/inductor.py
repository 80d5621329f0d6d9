"""`torch._dynamo.backends.inductor`: the backend that compiles, as a function."""

from __future__ import annotations

from typing import Any

from ...inductor.compile_fx import compile_fx


def inductor(*args: Any, **kwargs: Any) -> Any:
    """Compile a graph (`torch._inductor.compile_fx.compile_fx`).

    >>> import flambeau as torch
    >>> from flambeau.compiler.dynamo.backends.inductor import inductor
    >>> torch.compile(lambda x: x + 1, backend=inductor)(torch.ones(2))
    tensor([2., 2.])
    """
    return compile_fx(*args, **kwargs)


__all__ = ["inductor"]
