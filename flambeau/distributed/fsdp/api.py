"""`torch.distributed.fsdp.api`: options of `FullyShardedDataParallel`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from ...nn.modules.batchnorm import _BatchNorm


class ShardingStrategy(Enum):
    """What is divided between processes.

    FULL_SHARD: parameters, gradients and optimizer states; parameters are gathered for each pass. SHARD_GRAD_OP:
    parameters stay whole between the forward and the backward pass. NO_SHARD: nothing. HYBRID_SHARD and
    _HYBRID_SHARD_ZERO2: as the first two within groups of processes, which are copies of each other.
    """

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When a backward pass gathers the next parameters: before or after the gradients of the current module."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


@dataclass
class MixedPrecision:
    """The dtypes in which a module computes and communicates.

    Attributes:
        param_dtype: of gathered parameters.
        reduce_dtype: in which gradients are reduced.
        buffer_dtype: of buffers.
        keep_low_precision_grads: keep reduced gradients in `reduce_dtype`.
        cast_forward_inputs: convert the inputs of each wrapped module.
        cast_root_forward_inputs: convert the inputs of the root.
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type] = (_BatchNorm,)


@dataclass
class CPUOffload:
    """Accepted: parts are on the CPU.

    Attributes:
        offload_params: without effect.
    """

    offload_params: bool = False


class StateDictType(Enum):
    """What state dicts hold: whole tensors, flat parts, or `DTensor`s."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


@dataclass
class StateDictConfig:
    """The base class of options of state dicts.

    Attributes:
        offload_to_cpu: without effect.
    """

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Options of whole state dicts.

    Attributes:
        rank0_only: the other processes get an empty one.
    """

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """Options of state dicts of flat parts."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Options of state dicts of `DTensor`s."""

    _use_dtensor: bool = True


@dataclass
class OptimStateDictConfig:
    """The base class of options of optimizers' state dicts.

    Attributes:
        offload_to_cpu: without effect.
    """

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Options of whole state dicts of optimizers.

    Attributes:
        rank0_only: the other processes get an empty one.
    """

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """Options of optimizers' state dicts of flat parts."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Options of optimizers' state dicts of `DTensor`s."""

    _use_dtensor: bool = True


@dataclass
class StateDictSettings:
    """What kind of state dicts a module makes.

    Attributes:
        state_dict_type: the kind.
        state_dict_config: options of the module's.
        optim_state_dict_config: options of the optimizer's.
    """

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig


__all__ = ["BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig",
           "LocalOptimStateDictConfig", "LocalStateDictConfig", "MixedPrecision", "OptimStateDictConfig",
           "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig",
           "StateDictSettings", "StateDictType"]
