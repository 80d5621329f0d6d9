"""The submodules of `torch.distributed` that are left out, with the names that programs take from them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from ..environment.left_out import LeftOut, tree
from . import state_dict
from .module_states import _sync_module_states

_Args = ParamSpec("_Args")
_R = TypeVar("_R")

REASON = "flambeau has no accelerators, remote calls and sharded tensors"

_P = "torch.distributed"
_FSDP: dict[str, Any] = {
    "classes": ("BackwardPrefetch CPUOffload CPUOffloadPolicy FSDPModule FullOptimStateDictConfig FullStateDictConfig "
                "FullyShardedDataParallel LocalOptimStateDictConfig LocalStateDictConfig MixedPrecision "
                "MixedPrecisionPolicy OffloadPolicy OptimStateDictConfig ShardedOptimStateDictConfig "
                "ShardedStateDictConfig StateDictConfig StateDictSettings FlatParameter UnshardHandle"),
    "functions": "fully_shard register_fsdp_forward_method",
    "enums": {"ShardingStrategy": "FULL_SHARD SHARD_GRAD_OP NO_SHARD HYBRID_SHARD _HYBRID_SHARD_ZERO2",
              "StateDictType": "FULL_STATE_DICT LOCAL_STATE_DICT SHARDED_STATE_DICT",
              "OptimStateKeyType": "PARAM_NAME PARAM_ID"},
}


def _requiring_rpc(func: Callable[_Args, _R]) -> Callable[_Args, _R]:
    """Decorate a function of remote calls, as packages do when they are imported: it needs `init_rpc` before a call."""
    @functools.wraps(func)
    def refuse(*args: _Args.args, **kwargs: _Args.kwargs) -> _R:
        raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.")

    return refuse


#: name below `torch.distributed` -> what is in it
_CONTENTS: dict[str, dict[str, Any]] = {
    "_composable": {"functions": "checkpoint replicate contract"},
    "algorithms._checkpoint": {},
    "algorithms._checkpoint.checkpoint_wrapper": {
        "classes": "CheckpointWrapper OffloadWrapper ActivationWrapper",
        "functions": "apply_activation_checkpointing checkpoint_wrapper offload_wrapper",
        "enums": {"CheckpointImpl": "REENTRANT NO_REENTRANT"}},
    "algorithms.ddp_comm_hooks.post_localSGD_hook": {"classes": "PostLocalSGDState", "functions": "post_localSGD_hook"},
    "algorithms.model_averaging": {},
    "algorithms.model_averaging.averagers": {"classes": "ModelAverager PeriodicModelAverager"},
    "autograd": {"classes": "context"},
    "checkpoint": {"classes": ("DefaultLoadPlanner DefaultSavePlanner FileSystemReader FileSystemWriter LoadPlan "
                               "LoadPlanner Metadata SavePlan SavePlanner StorageReader StorageWriter"),
                   "functions": "load load_state_dict save save_state_dict async_save"},
    "checkpoint.default_planner": {"classes": "DefaultLoadPlanner DefaultSavePlanner"},
    "checkpoint.filesystem": {"classes": "FileSystemReader FileSystemWriter"},
    "checkpoint.format_utils": {"classes": "_EmptyStateDictLoadPlanner BroadcastingTorchSaveReader",
                                "functions": "_load_state_dict dcp_to_torch_save torch_save_to_dcp"},
    "checkpoint.hf_storage": {"classes": "HuggingFaceStorageReader HuggingFaceStorageWriter"},
    "checkpoint.metadata": {"classes": "Metadata MetadataIndex StorageMeta TensorStorageMetadata"},
    "checkpoint.optimizer": {"functions": "load_sharded_optimizer_state_dict"},
    "checkpoint.planner": {"classes": "LoadPlan LoadPlanner SavePlan SavePlanner"},
    "checkpoint.state_dict": {
        "functions": "get_optimizer_state_dict get_state_dict set_optimizer_state_dict set_state_dict",
        "values": {name: getattr(state_dict, name) for name in state_dict.__all__}},
    "checkpoint.state_dict_loader": {"functions": "_load_state_dict load load_state_dict"},
    "checkpoint.stateful": {"classes": "Stateful"},
    "fsdp": _FSDP,
    "fsdp._fully_shard": _FSDP,
    "fsdp.api": _FSDP,
    "fsdp.fully_sharded_data_parallel": _FSDP,
    "fsdp.sharded_grad_scaler": {"classes": "ShardedGradScaler"},
    "fsdp.wrap": {"classes": "CustomPolicy ModuleWrapPolicy", "functions": (
        "_recursive_wrap always_wrap_policy enable_wrap lambda_auto_wrap_policy size_based_auto_wrap_policy "
        "transformer_auto_wrap_policy wrap")},
    "launcher": {},
    "launcher.api": {"classes": "LaunchConfig elastic_launch"},
    "remote_device": {"classes": "_remote_device"},
    "rpc": {"classes": "RRef TensorPipeRpcBackendOptions", "functions": "init_rpc rpc_async rpc_sync remote shutdown"},
    "rpc.api": {"functions": "_all_gather", "values": {"_require_initialized": _requiring_rpc}},
    "utils": {"functions": "_verify_param_shape_across_processes",
              "values": {"_sync_module_states": _sync_module_states}},
}

MODULES = {name: LeftOut(f"{_P}.{name}", REASON, **contents)
           for name, contents in _CONTENTS.items()}
tree(MODULES)
for _name in ("_fully_shard", "api", "fully_sharded_data_parallel"):  # one class under all of its names
    vars(MODULES[f"fsdp.{_name}"]).update({key: value for key, value in vars(MODULES["fsdp"]).items()
                                           if isinstance(value, type)})

def left_out(name: str) -> LeftOut:
    """A module that is left out.

    Raises:
        AttributeError: `torch.distributed` has no such module either.
    """
    if name not in MODULES:
        raise AttributeError(f"module '{_P}' has no attribute '{name}'")
    return MODULES[name]


__all__ = ["MODULES", "REASON", "left_out"]
