"""`replicate`: data parallelism of a module as it is, without a wrapper."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any, NoReturn

from ...devices import device as device_type
from ...nn.modules.container import ParameterList
from ...nn.modules.module import Module
from ...nn.parallel.distributed import DistributedDataParallel
from .contract import _get_registry, _State, contract

__all__ = ["replicate"]


class _ReplicateState(_State):
    """The `DistributedDataParallel` of a module's parameters, made at the first forward pass."""

    def __init__(self) -> None:
        self._param_names: list[str] = []
        self._no_sync = False
        self._init: tuple[Module, set[Module], dict[str, Any]] | None = None
        self._ddp: Any = None
        self._ddp_weakref: Any = None
        self._comm_hook_args: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def _collect(self, module: Module, ignored: set[Module], prefix: str, found: list[Any]) -> None:
        if _is_fully_sharded(module) or module in ignored:
            return
        for name, param in module.named_parameters(recurse=False):
            found.append(param)
            self._param_names.append(prefix + name)
        for name, child in module.named_children():
            self._collect(child, ignored, f"{prefix}{name}.", found)

    def lazy_init(self) -> None:
        """Make the wrapper of the parameters."""
        if self._init is None:
            return
        (module, ignored, kwargs), self._init = self._init, None
        params: list[Any] = []
        self._collect(module, ignored, "", params)
        device = kwargs.pop("device_id", None)
        if device is not None and not (isinstance(device, device_type) and device.type == "cpu"):
            kwargs["device_ids"] = [device]
        self._ddp = DistributedDataParallel(ParameterList(params), **kwargs)
        self._ddp_weakref = weakref.ref(self._ddp)
        for args, named in self._comm_hook_args:
            self._ddp.register_comm_hook(*args, **named)
        self._comm_hook_args.clear()

    def before(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The hook before a forward pass."""
        self.lazy_init()
        self._ddp.require_backward_grad_sync = not self._no_sync
        DistributedDataParallel._active_ddp_module = self._ddp
        return self._ddp._pre_forward(*args, **kwargs)

    def after(self, module: Module, args: Any, output: Any) -> Any:
        """The hook after it."""
        DistributedDataParallel._active_ddp_module = None
        return self._ddp._post_forward(output)


class DDP:
    """What `replicate` adds to the class of a module."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        kind = cls.__mro__[2]  # of a slice of a container, which is made of its class
        return kind.__new__(kind)  # type: ignore[call-overload]

    def set_requires_gradient_sync(self, requires_gradient_sync: bool) -> None:
        """Choose whether gradients are averaged; else they accumulate.

        Args:
            requires_gradient_sync: whether.
        """
        replicate.state(self)._no_sync = not requires_gradient_sync

    def register_comm_hook(self, *args: Any, **kwargs: Any) -> None:
        """Set what averages gradients; the arguments are those of `DistributedDataParallel.register_comm_hook`."""
        replicate.state(self)._comm_hook_args.append((args, kwargs))

    def __deepcopy__(self, memo: Any) -> NoReturn:
        raise AssertionError("DDP does not support deepcopy. Please use state dict for serialization.")


@contract(state_cls=_ReplicateState)
def replicate(module: Module, ignored_modules: Iterable[Module] | None = None, **kwargs: Any) -> Module:
    """Average the gradients of a module over processes, as `DistributedDataParallel` does. Its names stay.

    Args:
        module: the module.
        ignored_modules: submodules whose gradients are not averaged.
        kwargs: arguments of `DistributedDataParallel`; `device_id` in the place of `device_ids`.

    Raises:
        RuntimeError: the module is fully sharded, or `device_id` is no device (PyTorch's texts).

    >>> import flambeau as torch
    >>> from flambeau.distributed._composable import replicate
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> layer = replicate(torch.nn.Linear(2, 1))
    >>> layer(torch.ones(3, 2)).sum().backward()
    >>> layer.weight.grad
    tensor([[3., 3.]])
    >>> dist.destroy_process_group()
    """
    if "device_id" in kwargs and not isinstance(kwargs["device_id"], (int, device_type)):
        raise RuntimeError(f"Expected device_id to be int or torch.device, but got {type(kwargs['device_id'])}")
    if _is_fully_sharded(module):
        raise RuntimeError("Cannot apply `replicate()` on a Module already managed by `fully_shard`")
    state = replicate.state(module)
    module.register_forward_pre_hook(state.before, with_kwargs=True)
    module.register_forward_hook(state.after)
    state._init = module, set(ignored_modules or ()), dict(kwargs)
    kind = type(module)
    module.__class__ = type(f"DDP{kind.__name__}", (DDP, kind), {})
    return module


def _is_fully_sharded(module: Module) -> bool:
    from ..fsdp import FSDPModule

    registry = _get_registry(module)
    return isinstance(module, FSDPModule) or (registry is not None and "fully_shard" in registry)
