"""Communication hooks of `DistributedDataParallel`, by name."""

from __future__ import annotations

import enum
import functools
from typing import Any

from ...names import left_out
from . import debugging_hooks, default_hooks, powerSGD_hook

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


def _plain(hook: Any, model: Any, state: Any) -> None:
    model.register_comm_hook(state, hook)


def _with_state(hook: Any, model: Any, state: Any, **options: Any) -> None:
    model.register_comm_hook(powerSGD_hook.PowerSGDState(process_group=state, **options), hook)


class DDPCommHookType(enum.Enum):
    """Communication hooks, by name.

    >>> from flambeau.distributed.algorithms.ddp_comm_hooks import DDPCommHookType
    >>> DDPCommHookType.ALLREDUCE.name
    'ALLREDUCE'
    """

    ALLREDUCE = functools.partial(_plain, default_hooks.allreduce_hook)
    FP16_COMPRESS = functools.partial(_plain, default_hooks.fp16_compress_hook)
    BF16_COMPRESS = functools.partial(_plain, default_hooks.bf16_compress_hook)
    POWER_SGD = functools.partial(_with_state, powerSGD_hook.powerSGD_hook, matrix_approximation_rank=1)
    POWER_SGD_RANK2 = functools.partial(_with_state, powerSGD_hook.powerSGD_hook, matrix_approximation_rank=2)
    NOOP = functools.partial(_plain, debugging_hooks.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Set one of the hooks.

    Args:
        comm_hook_type: which.
        model: a `DistributedDataParallel`.
        state: the processes; the model's if None.
    """
    comm_hook_type.value(model=model, state=state)


def __getattr__(name: str) -> Any:
    return left_out(f"algorithms.ddp_comm_hooks.{name}")
