"""`torch._dynamo.compiled_autograd`: PyTorch's tracer of whole backward passes, which flambeau does not have.

A compiled function has its own backward program here, and backward passes run as eager mode runs them: no backward
pass is ever captured by a compiler of its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

#: whether backward passes are captured, by `_enable` in PyTorch
compiled_autograd_enabled = False
compiled_autograd_enabled_force_eager = False
#: whether a captured backward pass is running
in_compiled_autograd_region = False
#: whether `_disable` is active
active_disable_ctx = False
depth = 0


@contextlib.contextmanager
def _enable(compiler_fn: Callable[..., Any], dynamic: bool = True,
            ignore_active_disable_ctx: bool = True) -> Iterator[None]:
    """A `with` block whose backward passes are captured: refused, except inside of `_disable`, where none is.

    Args:
        compiler_fn: what would compile the captured graphs.
        dynamic: whether sizes would be symbolic.
        ignore_active_disable_ctx: False: inside `_disable` the block has no effect.

    Raises:
        NotImplementedError: always, but for the case above.
    """
    if not ignore_active_disable_ctx and active_disable_ctx:
        yield
        return
    raise NotImplementedError("torch._dynamo.compiled_autograd: flambeau does not capture backward passes in graphs of "
                              "their own; the backward pass of a compiled function is compiled with it")


@contextlib.contextmanager
def _disable() -> Iterator[None]:
    """A `with` block whose backward passes are not captured.

    >>> import flambeau.compiler.dynamo.compiled_autograd
    >>> with _disable():
    ...     flambeau.compiler.dynamo.compiled_autograd.active_disable_ctx
    True
    """
    global active_disable_ctx
    active_disable_ctx = True
    try:
        yield
    finally:
        active_disable_ctx = False


def reset() -> None:
    """Forget what was captured: nothing.

    Raises:
        AssertionError: inside of a captured backward pass.
    """
    if in_compiled_autograd_region:
        raise AssertionError("Cannot reset while in_compiled_autograd_region is True")


def snapshot_verbose_logging_enabled() -> bool:
    """Whether captures are logged."""
    return False


def snapshot_cudagraph_enabled() -> bool:
    """Whether captured passes run as CUDA graphs."""
    return False


__all__ = ["reset"]
