"""Wrappers whose module saves no activations, or saves them in host memory; names of states have no trace of them."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Any

from ....autograd.graph import save_on_cpu
from ....nn.modules.module import Module
from ....nn.parameter import Parameter
from ....utils.checkpoint import checkpoint
from ...fsdp.wrap import _Policy, lambda_auto_wrap_policy, wrap_submodules
from ...utils import _pack_kwargs, _replace_by_prefix, _unpack_kwargs

__all__ = ["ActivationWrapper", "CheckpointImpl", "CheckpointWrapper", "OffloadWrapper",
           "apply_activation_checkpointing", "checkpoint_wrapper", "offload_wrapper"]

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = f"{_CHECKPOINT_WRAPPED_MODULE}."


class CheckpointImpl(Enum):
    """How activations are recomputed: by a backward pass within the pass, or as saved tensors are unpacked."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


def _without_prefix(module: Module, state_dict: dict[str, Any], prefix: str, *args: Any) -> dict[str, Any]:
    _replace_by_prefix(state_dict, prefix + _CHECKPOINT_PREFIX, prefix)
    return state_dict


def _with_prefix(module: Module, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
    _replace_by_prefix(state_dict, prefix, prefix + _CHECKPOINT_PREFIX)


class ActivationWrapper(Module, ABC):
    """A module around another one, whose attributes, items and names of parameters and states it has.

    Args:
        mod: the module.
    """

    _checkpoint_wrapped_module: Module
    _post_state_dict_hook = staticmethod(_without_prefix)
    _pre_load_state_dict_hook = staticmethod(_with_prefix)

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(_without_prefix)
        self.register_load_state_dict_pre_hook(_with_prefix)

    @abstractmethod
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: int) -> Any:
        return self._checkpoint_wrapped_module[key]  # type: ignore[index]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Parameter]]:
        """Names and parameters, without wrappers in the names."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter


class OffloadWrapper(ActivationWrapper):
    """A module whose saved tensors are in host memory until the backward pass."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """A module whose activations the backward pass recomputes; `checkpoint_wrapper` makes it.

    Args:
        mod: the module.
        checkpoint_impl: how `torch.utils.checkpoint.checkpoint` recomputes.
        checkpoint_fn: called in its place.
        checkpoint_fn_kwargs: its options.
    """

    def __init__(self, mod: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
                 checkpoint_fn: Callable[..., Any] | None = None, **checkpoint_fn_kwargs: Any) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            checkpoint_fn = checkpoint
            checkpoint_fn_kwargs = {"use_reentrant": checkpoint_impl is CheckpointImpl.REENTRANT,
                                    **checkpoint_fn_kwargs}
        self.checkpoint_fn = functools.partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        module = self._checkpoint_wrapped_module
        if not kwargs or self.checkpoint_impl is not CheckpointImpl.REENTRANT:
            return self.checkpoint_fn(module, *args, **kwargs)
        # the reentrant function takes no keywords: gradients flow to what is positional
        packed, names = _pack_kwargs(*args, **kwargs)

        def call(*inputs: Any) -> Any:
            positional, named = _unpack_kwargs(inputs, names)
            return module(*positional, **named)

        return self.checkpoint_fn(call, *packed)


def offload_wrapper(module: Module) -> Module:
    """Return a module whose saved tensors are in host memory until the backward pass.

    Args:
        module: the module.
    """
    return OffloadWrapper(module)


def checkpoint_wrapper(module: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
                       checkpoint_fn: Callable[..., Any] | None = None, **checkpoint_fn_kwargs: Any) -> Module:
    """Return a module whose activations the backward pass recomputes.

    Args:
        module: the module.
        checkpoint_impl: how `torch.utils.checkpoint.checkpoint` recomputes.
        checkpoint_fn: called in its place.
        checkpoint_fn_kwargs: its options.

    >>> import flambeau as torch
    >>> from flambeau.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    >>> list(checkpoint_wrapper(torch.nn.Linear(2, 1)).state_dict())
    ['weight', 'bias']
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(model: Module, checkpoint_wrapper_fn: Callable[..., Module] = checkpoint_wrapper,
                                   check_fn: Callable[[Module], bool] = lambda _: True,
                                   auto_wrap_policy: Any = None) -> None:
    """Wrap submodules in place, those within others first; the model itself stays as it is.

    Args:
        model: the model.
        checkpoint_wrapper_fn: wraps a module.
        check_fn: whether to wrap a module.
        auto_wrap_policy: a policy of `torch.distributed.fsdp.wrap`, in place of `check_fn`.

    Raises:
        ValueError: the policy is none (PyTorch's text).
    """
    policy = functools.partial(lambda_auto_wrap_policy, lambda_fn=check_fn) if (
        auto_wrap_policy is None) else auto_wrap_policy
    if not callable(policy) and not isinstance(policy, _Policy):
        raise ValueError(f"Expected {policy} to be callable or be a pre-defined wrap policy")
    wrap_submodules(model, policy, checkpoint_wrapper_fn, set(), set(), {})
