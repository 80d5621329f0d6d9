"""`fully_shard`: parameters, gradients and optimizer states are divided between processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ...._tensor.parameter import Parameter
from ....nn.modules.container import ModuleDict, ModuleList
from ....nn.modules.module import Module
from ...device_mesh import DeviceMesh, init_device_mesh
from ...groups.queries import get_world_size
from ._fsdp_api import MixedPrecisionPolicy, OffloadPolicy
from ._fsdp_mesh import DataParallelMesh, check_mesh, size_after_forward
from ._fsdp_param import FSDPParam
from ._fsdp_param_group import FSDPParamGroup
from ._fsdp_state import FSDPState

_SAME_DTYPES, _NO_OFFLOAD = MixedPrecisionPolicy(), OffloadPolicy()
#: class of a module -> its class once it is sharded
_SHARDED_CLASSES: dict[type, type] = {}


def fully_shard(module: Any, *, mesh: DeviceMesh | None = None, reshard_after_forward: bool | int | None = None,
                shard_placement_fn: Callable[[Parameter], Any] | None = None,
                mp_policy: MixedPrecisionPolicy = _SAME_DTYPES,
                offload_policy: OffloadPolicy = _NO_OFFLOAD, ignored_params: set[Parameter] | None = None,
                dp_mesh_dims: Any = None) -> Any:
    """Divide the parameters of a module between processes; each has a part, and of gradients and optimizer states too.

    Before a forward or backward pass of the module, its parameters are gathered by one collective. Afterwards they are
    given back, and gradients are averaged by one reduce-scatter. Parameters of submodules to which it was applied
    before are left to those calls, so it is applied from the inside out.

    Args:
        module: the module, or a list of modules that are gathered together.
        mesh: the processes; of two dimensions, parameters are copied over the first, and cut over the second. Default:
            all processes.
        reshard_after_forward: give the whole parameters back after the forward pass, and gather them again; default:
            unless the module is the root. A number: keep parts that are larger, for groups of so many processes, which
            alone gather in the backward pass; a divisor of the number of processes that parameters are cut over.
        shard_placement_fn: returns the `Shard` of a parameter; None or default: `Shard(0)`.
        mp_policy: the dtypes.
        offload_policy: accepted: parts are on the CPU.
        ignored_params: parameters that stay whole.
        dp_mesh_dims: not there.

    Returns:
        The module, whose class is now a subclass of `FSDPModule` too.

    Raises:
        ValueError: a container that is not called, a mesh that does not fit, or a number that is no divisor (PyTorch's
            texts).
        NotImplementedError: `dp_mesh_dims` is given.

    >>> import flambeau as torch
    >>> from flambeau.distributed.fsdp import fully_shard
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = fully_shard(torch.nn.Linear(2, 2))
    >>> model.weight.placements, model(torch.ones(1, 2)).shape
    ((Shard(dim=0),), flambeau.Size([1, 2]))
    >>> dist.destroy_process_group()
    """
    modules = list(module) if isinstance(module, (list, tuple)) else [module]
    if not modules:
        raise ValueError("fully_shard does not support an empty list of modules")
    for each in modules:
        if isinstance(each, (ModuleList, ModuleDict)) and type(each).forward is Module.forward:
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {each}")
        if isinstance(each, FSDPModule):
            raise AssertionError("Each distinct composable distributed API can only be applied to a module once. "
                                 "fully_shard has already been applied to the following module.\n"
                                 f"{each}")
    if dp_mesh_dims is not None:
        raise NotImplementedError("fully_shard: dp_mesh_dims is not there; pass the data parallel dimensions of the "
                                  "mesh as `mesh` instead, as mesh['dp'] or mesh['replicate', 'shard']")
    if mesh is None:
        mesh = init_device_mesh("cpu", (get_world_size(),))
    check_mesh(mesh)
    parallel = DataParallelMesh(mesh)
    automatic = reshard_after_forward is None
    kept = size_after_forward(automatic or reshard_after_forward, parallel)
    managed = _managed_modules(modules)
    ignored = set(map(id, ignored_params or ()))
    places: dict[int, tuple[Any, list[tuple[Module, str]]]] = {}
    for each in managed:
        for name, param in each._parameters.items():
            if param is not None and id(param) not in ignored:
                places.setdefault(id(param), (param, []))[1].append((each, name))
    params = [FSDPParam(param, where, parallel, shard_placement_fn, mp_policy.param_dtype)
              for param, where in places.values()]
    group = FSDPParamGroup(params, parallel, mp_policy) if params else None
    if group is not None and 1 < kept < parallel.shard_size:
        group.smaller_mesh = parallel.after_forward(kept)
    reshards = None if automatic else reshard_after_forward is True or kept > 1
    state = FSDPState(modules, group, mp_policy, reshards)
    for each in modules:
        each._fsdp_state = state
        each.__class__ = _sharded_class(type(each))
    for each in managed:
        each._is_fsdp_managed_module = True
        each._fsdp_use_orig_params = True
    return module


def _managed_modules(roots: list[Module]) -> list[Module]:
    """The modules below `roots` that no other call manages."""
    found: dict[int, Module] = {}

    def visit(module: Module) -> None:
        if id(module) in found or (isinstance(module, FSDPModule)):
            return
        found[id(module)] = module
        for child in module.children():
            visit(child)

    for root in roots:
        visit(root)
    return list(found.values())


def _sharded_class(cls: type) -> type:
    found = _SHARDED_CLASSES.get(cls)
    if found is None:
        found = _SHARDED_CLASSES[cls] = type(f"FSDP{cls.__name__}", (FSDPModule, cls), {
            "__deepcopy__": _refuse_deepcopy, "__module__": cls.__module__})
    return found


def _refuse_deepcopy(self: Any, memo: Any) -> Any:
    raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")


class UnshardHandle:
    """A gathering that `FSDPModule.unshard(async_op=True)` began."""

    def __init__(self, group: FSDPParamGroup | None = None) -> None:
        self._group = group

    def wait(self) -> None:
        """Wait until the whole parameters are in the module."""
        if self._group is not None:
            self._group.wait()
            self._group = None


class FSDPModule:
    """What a module is, besides its own class, after `fully_shard`.

    Raises:
        AssertionError: a copy is asked for.
    """

    _fsdp_state: FSDPState

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        original: Any = cls.__mro__[2]
        made = original.__new__(original)
        made.__init__(*args, **kwargs)
        return made

    def _get_fsdp_state(self) -> FSDPState:
        return self._fsdp_state

    def _states(self, recurse: bool) -> list[FSDPState]:
        if not recurse:
            return [self._fsdp_state]
        return list({id(m._fsdp_state): m._fsdp_state for m in cast(Module, self).modules()
                     if isinstance(m, FSDPModule)}.values())

    def reshard(self) -> None:
        """Give the whole parameters back; not those of submodules with calls of their own."""
        if self._fsdp_state.group is not None:
            self._fsdp_state.group.reshard()

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the whole parameters; not those of submodules with calls of their own.

        Args:
            async_op: return a handle while the collective runs.
        """
        group = self._fsdp_state.group
        if group is not None:
            group.unshard(async_op=async_op)
        return UnshardHandle(group) if async_op else None

    def reset_iter_state(self) -> None:
        """Forget a pass that an exception ended: parameters are given back, gradients of the pass are lost.

        Raises:
            RuntimeError: the module is not the root.
        """
        iteration = self._fsdp_state.lazy_init()
        if iteration.root is not self._fsdp_state:
            raise RuntimeError("reset_iter_state() must be called on the root FSDP module")
        iteration.in_forward = iteration.callback_queued = False
        iteration.order, iteration.reductions = [], []
        for state in self._fsdp_state.below():
            state.in_backward = False
            state._entered.clear()
            if state.group is not None:
                for param in state.group.params:
                    param.take_gradient()
                state.group.reshard()

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Say whether the next backward pass waits for the reductions.

        Args:
            is_last_backward: whether it is the last before the optimizer's step.
        """
        self._fsdp_state.lazy_init().is_last_backward = is_last_backward

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Say whether backward passes reduce gradients; else whole ones are accumulated, without communication.

        Args:
            requires_gradient_sync: whether they do.
            recurse: for submodules too.
        """
        for state in self._states(recurse):
            if state.group is not None:
                state.group.reduce_grads = state.group.all_reduce_grads = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Say whether gradients are reduced over the replicating dimension of the mesh.

        Args:
            requires_all_reduce: whether they are.
            recurse: for submodules too.
        """
        for state in self._states(recurse):
            if state.group is not None:
                state.group.all_reduce_grads = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Change `reshard_after_forward`.

        Args:
            reshard_after_forward: whether whole parameters are given back after a forward pass.
            recurse: for submodules too.
        """
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(f"reshard_after_forward should be a bool, got {type(reshard_after_forward)}")
        for state in self._states(recurse):
            state.reshard_after_forward, state.automatic = reshard_after_forward, False
            if state.group is not None:
                state.group.smaller_mesh = None

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Say whether whole parameters are given back after a backward pass.

        Args:
            reshard_after_backward: whether they are.
            recurse: for submodules too.
        """
        for state in self._states(recurse):
            if state.group is not None:
                state.group.reshard_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Gather the parameters of other modules while this one's forward pass runs.

        Args:
            modules: those that are called next.
        """
        self._fsdp_state.forward_prefetch = [_state_of(each) for each in modules]

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Gather the parameters of other modules while this one's backward pass runs; default: of the one before.

        Args:
            modules: those whose backward passes come next.
        """
        self._fsdp_state.backward_prefetch = [_state_of(each) for each in modules]

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Change what sums of gradients are divided by.

        Args:
            factor: the divisor; default: the number of processes.
        """
        if self._fsdp_state.group is not None:
            self._fsdp_state.group.divide_factor = factor

    def set_reduce_scatter_divide_factor(self, factor: float) -> None:
        """The same as `set_gradient_divide_factor`.

        Args:
            factor: the divisor.
        """
        self.set_gradient_divide_factor(factor)

    def set_force_sum_reduction_for_comms(self, enable: bool) -> None:
        """Accepted: gradients are added, then divided, in any case.

        Args:
            enable: without effect.
        """

    def set_allocate_memory_from_process_group_for_comm(self, enable: bool) -> None:
        """Accepted: process groups have no memory of their own.

        Args:
            enable: without effect.
        """

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Say whether a backward pass gathers the parameters, which a module that only holds inputs needs not.

        Args:
            unshard_in_backward: whether it does.
        """
        self._fsdp_state.unshard_in_backward = unshard_in_backward

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        """Convert the parts, not the whole parameters."""
        self.reshard()
        result = super()._apply(*args, **kwargs)  # type: ignore[misc]
        for state in self._states(True):
            if state.group is not None:
                for param in state.group.params:
                    param.adopt_registered()
        return result


def _state_of(module: Any) -> FSDPState:
    if not isinstance(module, FSDPModule):
        raise ValueError(f"All modules must be FSDPModule: {module}")
    return module._fsdp_state


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Let a method gather the parameters as `forward` does.

    Args:
        module: the module; nothing happens if it is not sharded.
        method_name: the name of the method.

    Raises:
        ValueError: there is no such method (PyTorch's text).
    """
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    original = getattr(module, method_name)
    state = module._fsdp_state

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = state._pre_forward(module, args, kwargs)
        output = original(*args, **kwargs)
        result = state._post_forward(module, args, output)
        return output if result is None else result

    setattr(module, method_name, wrapped)


def share_comm_ctx(modules: list[FSDPModule]) -> None:
    """Accepted: groups have no streams of their own.

    Args:
        modules: modules of several roots.
    """
    for module in modules:
        _state_of(module)


__all__ = ["FSDPModule", "UnshardHandle", "fully_shard", "register_fsdp_forward_method", "share_comm_ctx"]
