"""`checkpoint`: a module whose activations are recomputed in backward, under the same names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ...nn.modules.module import Module
from ...utils.checkpoint import checkpointed_region, noop_context_fn
from .contract import _State, contract

__all__ = ["checkpoint"]


class _CheckpointState(_State):
    """Whether hooks checkpoint the next call, and the block that it is in."""

    enable_hook = False
    _ac_generator: Any = None


@contextlib.contextmanager
def _without_hooks(module: Module, outer: Any) -> Iterator[None]:
    """A block, within `outer`, in which calls of a module are not checkpointed: its recomputation."""
    state = checkpoint.state(module)
    with outer:
        before, state.enable_hook = state.enable_hook, False
        try:
            yield
        finally:
            state.enable_hook = before


@contract(_CheckpointState)
def checkpoint(module: Module, **kwargs: Any) -> Module:
    """Let a module save no activations: backward recomputes them. Its names stay.

    Args:
        module: the module.
        kwargs: as of `torch.utils.checkpoint.checkpoint` without `use_reentrant=True`.

    Raises:
        NotImplementedError: `use_reentrant=True` (PyTorch's text).
        ValueError: an unknown argument (PyTorch's text).

    >>> import flambeau as torch
    >>> from flambeau.distributed._composable import checkpoint
    >>> layer = checkpoint(torch.nn.Linear(2, 1))
    >>> layer(torch.ones(3, 2)).sum().backward()
    >>> layer.weight.grad
    tensor([[3., 3.]])
    """
    if kwargs.pop("use_reentrant", False):
        raise NotImplementedError("use_reentrant=True is not supported in composable checkpoint. Please use "
                                  "torch.utils.checkpoint.checkpoint instead.")
    options = {"preserve_rng_state": kwargs.pop("preserve_rng_state", True),
               "determinism_check": kwargs.pop("determinism_check", "default"), "debug": kwargs.pop("debug", False),
               "early_stop": kwargs.pop("early_stop", True)}
    contexts = kwargs.pop("context_fn", None) or noop_context_fn
    if kwargs:
        raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")

    def before(module: Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        state = checkpoint.state(module)
        if state.enable_hook:
            def context_fn() -> tuple[Any, Any]:
                forward, recomputation = contexts()
                return forward, _without_hooks(module, recomputation)

            state._ac_generator = checkpointed_region(module, args, named, context_fn=context_fn, **options)
            state._ac_generator.__enter__()

    def after(module: Module, args: Any, output: Any) -> None:
        state = checkpoint.state(module)
        if state.enable_hook and state._ac_generator is not None:
            block, state._ac_generator = state._ac_generator, None
            block.__exit__(None, None, None)

    checkpoint.state(module).enable_hook = True
    module.register_forward_pre_hook(before, with_kwargs=True)
    module.register_forward_hook(after, prepend=True, always_call=True)
    return module
