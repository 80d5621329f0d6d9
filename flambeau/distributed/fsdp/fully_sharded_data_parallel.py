"""`FullyShardedDataParallel`: the wrapper that divides the parameters of a module between processes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ...nn.modules.container import ModuleDict, ModuleList
from ...nn.modules.module import Module
from ...nn.utils.clip_grad import clip_grads_with_norm_, get_total_norm
from ..collectives import broadcast
from ..device_mesh import DeviceMesh
from ..tensor import DTensor
from ._fully_shard._fsdp_api import MixedPrecisionPolicy
from ._fully_shard._fsdp_mesh import DataParallelMesh, check_mesh
from ._fully_shard._fsdp_param import FSDPParam
from ._fully_shard._fsdp_param_group import FSDPParamGroup
from ._fully_shard._fsdp_state import FSDPState
from ._named_optimizer_states import (
    OptimStateKeyType,
    flatten_sharded_optim_state_dict,
    full_optim_state_dict,
    rekey_optim_state_dict,
    scatter_full_optim_state_dict,
    shard_full_optim_state_dict,
    sharded_optim_state_dict,
)
from ._wrapper_mesh import mesh_of
from ._wrapper_state_dict import (
    PREFIX,
    after_state_dict,
    before_load,
    clean,
    optimizer_state,
    optimizer_state_to_load,
)
from .api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from .wrap import wrap_submodules

FSDP_WRAPPED_MODULE = "_fsdp_wrapped_module"
FSDP_PREFIX = PREFIX

_KINDS = {StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
          StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
          StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig)}


class FullyShardedDataParallel(Module):
    """A module whose parameters, gradients and optimizer states are divided between processes.

    It does what `fully_shard` does, as a wrapper: its parameters are `DTensor`s of the original shapes, whatever
    `use_orig_params` says.

    Args:
        module: the module.
        process_group: the processes; with a hybrid strategy (those to cut over, those to copy over).
        sharding_strategy: what is divided; default: `FULL_SHARD`.
        cpu_offload: accepted.
        auto_wrap_policy: which submodules are wrapped first.
        backward_prefetch: None: gather the next parameters of a backward pass when they are needed.
        mixed_precision: the dtypes.
        ignored_modules: submodules whose parameters stay whole.
        param_init_fn: makes the parameters of a module that are on the device "meta".
        device_id: accepted.
        sync_module_states: copy parameters and buffers from the first process before.
        forward_prefetch: accepted.
        limit_all_gathers: accepted.
        use_orig_params: accepted.
        ignored_states: parameters that stay whole, or modules.
        device_mesh: the mesh, instead of `process_group`.

    Raises:
        ValueError: groups, mesh and strategy do not fit (PyTorch's texts).

    >>> import flambeau as torch
    >>> from flambeau.distributed.fsdp import FullyShardedDataParallel
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = FullyShardedDataParallel(torch.nn.Linear(2, 2))
    >>> model(torch.ones(1, 2)).shape, list(model.state_dict())
    (flambeau.Size([1, 2]), ['weight', 'bias'])
    >>> dist.destroy_process_group()
    """

    _has_comm_hook = False

    def __init__(self, module: Module, process_group: Any = None, sharding_strategy: ShardingStrategy | None = None,
                 cpu_offload: CPUOffload | None = None, auto_wrap_policy: Any = None,
                 backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
                 mixed_precision: MixedPrecision | None = None, ignored_modules: Iterable[Module] | None = None,
                 param_init_fn: Callable[[Module], None] | None = None, device_id: Any = None,
                 sync_module_states: bool = False, forward_prefetch: bool = False, limit_all_gathers: bool = True,
                 use_orig_params: bool = False, ignored_states: Iterable[Any] | None = None,
                 device_mesh: DeviceMesh | None = None) -> None:
        super().__init__()
        if isinstance(module, (ModuleList, ModuleDict)):
            warnings.warn("FSDP will not all-gather parameters for containers that do not implement forward: "
                          f"{module}", stacklevel=2)
        if ignored_modules is not None and ignored_states is not None:
            raise ValueError("Cannot pass both ignored_modules and ignored_states at the same time. Please just pass "
                             "ignored_states.")
        states = list(ignored_states or ())
        skipped = {m for each in (*(ignored_modules or ()), *(s for s in states if isinstance(s, Module)))
                   for m in each.modules()}
        kept = {p for m in skipped for p in m.parameters()} | {s for s in states if not isinstance(s, Module)}
        self.sharding_strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        self.mixed_precision = mixed_precision or MixedPrecision()
        self.cpu_offload = cpu_offload or CPUOffload()
        self.backward_prefetch, self.forward_prefetch = backward_prefetch, forward_prefetch
        self._use_orig_params, self._ignored_params, self._ignored_modules = use_orig_params, kept, skipped
        self._state_dict_settings = StateDictSettings(StateDictType.FULL_STATE_DICT, FullStateDictConfig(),
                                                      FullOptimStateDictConfig())
        self._summoned = False
        mesh = mesh_of(process_group, self.sharding_strategy, device_mesh)
        self._device_mesh, self.process_group = mesh, mesh.get_group(mesh.ndim - 1)
        self.rank, self.world_size = self.process_group.rank(), self.process_group.size()
        if auto_wrap_policy is not None:
            wrap_submodules(module, auto_wrap_policy, FullyShardedDataParallel, skipped, kept, {
                "process_group": process_group, "sharding_strategy": sharding_strategy, "cpu_offload": cpu_offload,
                "backward_prefetch": backward_prefetch, "mixed_precision": mixed_precision,
                "param_init_fn": param_init_fn, "sync_module_states": sync_module_states,
                "use_orig_params": use_orig_params, "ignored_states": kept, "device_mesh": device_mesh})
        _materialize(module, param_init_fn)
        self._fsdp_wrapped_module = module
        group = self._shard(module, mesh, sync_module_states)
        reshard = self.sharding_strategy not in (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy.NO_SHARD,
                                                 ShardingStrategy._HYBRID_SHARD_ZERO2)
        self._fsdp_state = FSDPState([self], group, self._policy(), reshard and None)
        if backward_prefetch is None:
            self._fsdp_state.backward_prefetch = []
        self.register_state_dict_post_hook(after_state_dict)
        self.register_load_state_dict_pre_hook(before_load)

    def _policy(self) -> MixedPrecisionPolicy:
        given = self.mixed_precision
        return MixedPrecisionPolicy(given.param_dtype, given.reduce_dtype, None,
                                    given.cast_forward_inputs or given.cast_root_forward_inputs)

    def _shard(self, module: Module, mesh: DeviceMesh, sync: bool) -> FSDPParamGroup | None:
        places: dict[int, tuple[Any, list[tuple[Module, str]]]] = {}
        for owner in _own_modules(module):
            for name, param in owner._parameters.items():
                if param is not None and param not in self._ignored_params:
                    places.setdefault(id(param), (param, []))[1].append((owner, name))
            for buffer in owner._buffers.values():
                if buffer is not None and sync:
                    broadcast(buffer.detach(), group=self.process_group, group_src=0)
            if self.mixed_precision.buffer_dtype is not None:
                for name, buffer in owner._buffers.items():
                    if buffer is not None and buffer.is_floating_point():
                        owner._buffers[name] = buffer.to(dtype=self.mixed_precision.buffer_dtype)
        check_mesh(mesh)
        parallel = DataParallelMesh(mesh)
        for param, _ in places.values() if sync else ():
            for group in (parallel.replicate_group, parallel.shard_group):
                if group is not None:
                    broadcast(param.detach(), group=group, group_src=0)
        params = [FSDPParam(param, where, parallel, None, self.mixed_precision.param_dtype)
                  for param, where in places.values()]
        return FSDPParamGroup(params, parallel, self._policy()) if params else None

    @property
    def module(self) -> Module:
        """The module that is wrapped."""
        found = self._fsdp_wrapped_module
        return found.module if isinstance(found, FullyShardedDataParallel) else found

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == FSDP_WRAPPED_MODULE:
                raise
            return getattr(self._fsdp_wrapped_module, name)

    def __getitem__(self, key: int) -> Any:
        return self._fsdp_wrapped_module.__getitem__(key)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module that is wrapped."""
        return self._fsdp_wrapped_module(*args, **kwargs)

    def check_is_root(self) -> bool:
        """Whether no other wrapper has this one below it."""
        return self._fsdp_state.lazy_init().root is self._fsdp_state

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """The wrappers in a module.

        Args:
            module: the module.
            root_only: only those that no other one has below it.
        """
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        if not root_only:
            return found
        inner = {id(below) for m in found for below in m._fsdp_wrapped_module.modules()}
        return [m for m in found if id(m) not in inner]

    def apply(self, fn: Callable[[Module], None]) -> FullyShardedDataParallel:
        """Apply a function to all submodules, while their parameters are whole.

        Args:
            fn: the function.
        """
        with FullyShardedDataParallel.summon_full_params(self):
            return super().apply(fn)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """The parameters and their names; within `summon_full_params` without those of wrappers."""
        for name, param in super().named_parameters(*args, **kwargs):
            yield (clean(name) if self._summoned else name), param

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """The buffers and their names; within `summon_full_params` without those of wrappers."""
        for name, buffer in super().named_buffers(*args, **kwargs):
            yield (clean(name) if self._summoned else name), buffer

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Accumulate whole gradients, without communication, in the block."""
        groups = [m._fsdp_state.group for m in FullyShardedDataParallel.fsdp_modules(self)]
        before = [(g, g.reduce_grads) for g in groups if g is not None]
        for group, _ in before:
            group.reduce_grads = False
        try:
            yield
        finally:
            for group, value in before:
                group.reduce_grads = value

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """Scale the gradients so that the norm of all of them is at most `max_norm`.

        Args:
            max_norm: the largest norm.
            norm_type: p of the norm.

        Returns:
            The norm before. Gradients of parameters that stay whole count as this process has them.
        """
        parameters = list(self.parameters())
        grads = [each.grad for each in parameters if each.grad is not None]
        total = get_total_norm([each for each in grads if isinstance(each, DTensor)], norm_type)
        total = total.full_tensor() if isinstance(total, DTensor) else total
        whole = [each for each in grads if not isinstance(each, DTensor)]
        if whole:
            total = get_total_norm([total, *whole], norm_type)
        clip_grads_with_norm_(parameters, max_norm, total)
        return total

    def register_comm_hook(self, state: Any, hook: Callable[..., Any]) -> None:
        """Set what averages gradients.

        Args:
            state: its first argument.
            hook: `hook(state, gradients, output)` writes this process's part of the averages to `output`; with
                `NO_SHARD`, `hook(state, gradients)` averages in place. Gradients are those of a wrapper, one after
                another, the part of each process in a row.

        Raises:
            AssertionError: this is not the outermost wrapper, the strategy is a hybrid one, or there is a hook.
            ValueError: it cannot be called (PyTorch's texts).
        """
        if not self.check_is_root():
            raise AssertionError("register_comm_hook can only be called on a root instance.")
        wrappers = FullyShardedDataParallel.fsdp_modules(self)
        for each in wrappers:
            if each.sharding_strategy in (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2):
                raise AssertionError("Communication hook is not supported for hybrid strategies: "
                                     f"{each.sharding_strategy}")
            if each._has_comm_hook:
                raise AssertionError("A communication hook is already registered")
            if not callable(hook):
                raise ValueError(f"The communication hook must be callable but got {hook}")
            each._has_comm_hook = True
            if each._fsdp_state.group is not None:
                each._fsdp_state.group.comm_hook = state, hook

    @staticmethod
    @contextmanager
    def summon_full_params(module: Module, recurse: bool = True, writeback: bool = True, rank0_only: bool = False,
                           offload_to_cpu: bool = False, with_grads: bool = False) -> Iterator[None]:
        """Have whole parameters in the block.

        Args:
            module: the module.
            recurse: of submodules too.
            writeback: keep what is written to them.
            rank0_only: with `writeback`, an error; else without effect.
            offload_to_cpu: without effect.
            with_grads: whether they have their whole gradients; with `writeback`, what is written to those is kept.

        Raises:
            NotImplementedError: `rank0_only` with `writeback` (PyTorch's text).
        """
        if writeback and rank0_only:
            raise NotImplementedError("is not supported")
        wrappers = FullyShardedDataParallel.fsdp_modules(module)
        if not recurse:
            wrappers = [m for m in wrappers if m is module]
        for each in wrappers:
            each._summoned = True
            if each._fsdp_state.group is not None:
                each._fsdp_state.group.unshard()
                if with_grads:
                    each._fsdp_state.group.gather_gradients()
        try:
            yield
        finally:
            for each in wrappers:
                each._summoned = False
                group = each._fsdp_state.group
                if group is not None:
                    if with_grads:
                        group.give_back_gradients(writeback)
                    if writeback:
                        group.write_back()
                    group.reshard()

    @staticmethod
    def set_state_dict_type(module: Module, state_dict_type: StateDictType,
                            state_dict_config: StateDictConfig | None = None,
                            optim_state_dict_config: OptimStateDictConfig | None = None) -> StateDictSettings:
        """Choose what state dicts hold, for all wrappers in a module.

        Args:
            module: the module.
            state_dict_type: the kind.
            state_dict_config: options of the module's.
            optim_state_dict_config: options of the optimizer's.

        Returns:
            What was chosen before.

        Raises:
            NotImplementedError: `LOCAL_STATE_DICT`: there are no flat parameters.
        """
        if state_dict_type is StateDictType.LOCAL_STATE_DICT:
            raise NotImplementedError("LOCAL_STATE_DICT holds flat parameters, which flambeau has not; use "
                                      "SHARDED_STATE_DICT")
        configs = _KINDS[state_dict_type]
        settings = StateDictSettings(state_dict_type, state_dict_config or configs[0](),
                                     optim_state_dict_config or configs[1]())
        before = FullyShardedDataParallel.get_state_dict_type(module)
        for each in FullyShardedDataParallel.fsdp_modules(module):
            each._state_dict_settings = settings
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """What state dicts hold.

        Args:
            module: the module.
        """
        for each in FullyShardedDataParallel.fsdp_modules(module):
            return each._state_dict_settings
        return StateDictSettings(StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig())

    @staticmethod
    @contextmanager
    def state_dict_type(module: Module, state_dict_type: StateDictType,
                        state_dict_config: StateDictConfig | None = None,
                        optim_state_dict_config: OptimStateDictConfig | None = None) -> Iterator[None]:
        """Choose what state dicts hold, in the block; the arguments are those of `set_state_dict_type`."""
        before = FullyShardedDataParallel.set_state_dict_type(module, state_dict_type, state_dict_config,
                                                              optim_state_dict_config)
        try:
            yield
        finally:
            for each in FullyShardedDataParallel.fsdp_modules(module):
                each._state_dict_settings = before

    @staticmethod
    def optim_state_dict(model: Module, optim: Any, optim_state_dict: dict[str, Any] | None = None,
                         group: Any = None) -> dict[str, Any]:
        """The state dict of an optimizer by names of parameters, of the kind that is set.

        Args:
            model: the module.
            optim: the optimizer.
            optim_state_dict: its state dict; default: a new one.
            group: without effect.
        """
        return optimizer_state(model, optim, optim_state_dict, FullyShardedDataParallel.get_state_dict_type(model))

    @staticmethod
    def optim_state_dict_to_load(model: Module, optim: Any, optim_state_dict: dict[str, Any],
                                 is_named_optimizer: bool = False, load_directly: bool = False,
                                 group: Any = None) -> dict[str, Any]:
        """The argument of `optim.load_state_dict` of what `optim_state_dict` returned.

        Args:
            model: the module.
            optim: the optimizer.
            optim_state_dict: the state dict by names.
            is_named_optimizer: without effect.
            load_directly: load it too.
            group: without effect.
        """
        made = optimizer_state_to_load(model, optim, optim_state_dict)
        if load_directly:
            optim.load_state_dict(made)
        return made

    full_optim_state_dict = staticmethod(full_optim_state_dict)
    sharded_optim_state_dict = staticmethod(sharded_optim_state_dict)
    shard_full_optim_state_dict = staticmethod(shard_full_optim_state_dict)
    scatter_full_optim_state_dict = staticmethod(scatter_full_optim_state_dict)
    flatten_sharded_optim_state_dict = staticmethod(flatten_sharded_optim_state_dict)
    rekey_optim_state_dict = staticmethod(rekey_optim_state_dict)


def _own_modules(root: Module) -> list[Module]:
    """The modules that no wrapper below `root` wraps."""
    found: dict[int, Module] = {}

    def visit(module: Module) -> None:
        if id(module) not in found and not isinstance(module, FullyShardedDataParallel):
            found[id(module)] = module
            for child in module.children():
                visit(child)

    visit(root)
    return list(found.values())


def _materialize(module: Module, param_init_fn: Callable[[Module], None] | None) -> None:
    """Make the parameters that are on the device "meta"."""
    for each in _own_modules(module):
        if any(p is not None and p.is_meta for p in each._parameters.values()):
            if param_init_fn is not None:
                param_init_fn(each)
            else:
                each.to_empty(device="cpu", recurse=False)
                each.reset_parameters()


FSDP = FullyShardedDataParallel

__all__ = ["FullyShardedDataParallel", "OptimStateKeyType"]
