"""`torch.multiprocessing`: Python's `multiprocessing`, whose queues and pipes send tensors by shared memory.

All names of `multiprocessing` are here. What one process writes to a tensor that it sent or received, the others see.

>>> import flambeau as torch
>>> import flambeau.multiprocessing as mp
>>> queue = mp.SimpleQueue()
>>> x = torch.zeros(2)
>>> queue.put(x)
>>> _ = queue.get().fill_(1.0)
>>> x
tensor([1., 1.])
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403
from typing import Any

from ..runtime import process_control, shared_memory
from . import _atfork as _atfork
from . import child_setup
from . import reductions as reductions
from .reductions import init_reductions
from .spawn import ENV_VAR_PARALLEL_START as ENV_VAR_PARALLEL_START
from .spawn import ProcessContext as ProcessContext
from .spawn import ProcessExitedException as ProcessExitedException
from .spawn import ProcessRaisedException as ProcessRaisedException
from .spawn import SpawnContext as SpawnContext
from .spawn import spawn as spawn
from .spawn import start_processes as start_processes

__all__ = ["set_sharing_strategy", "get_sharing_strategy", "get_all_sharing_strategies"]  # noqa: RUF022  PyTorch's order
__all__ += multiprocessing.__all__

_all_sharing_strategies = shared_memory.STRATEGIES
_prctl_pr_set_pdeathsig = process_control.set_parent_death_signal


def set_sharing_strategy(new_strategy: str) -> None:
    """Set how tensors are shared: by file descriptors, or by names in the file system.

    Args:
        new_strategy: one of `get_all_sharing_strategies()`.

    Raises:
        AssertionError: there is no such strategy.

    >>> import flambeau as torch
    >>> torch.multiprocessing.set_sharing_strategy(torch.multiprocessing.get_sharing_strategy())
    """
    if new_strategy not in _all_sharing_strategies:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {_all_sharing_strategies}")
    shared_memory.set_strategy(new_strategy)


def get_sharing_strategy() -> str:
    """How tensors are shared: "file_descriptor" or "file_system".

    >>> import flambeau as torch
    >>> torch.multiprocessing.get_sharing_strategy()
    'file_descriptor'
    """
    return shared_memory.get_strategy()


def get_all_sharing_strategies() -> set[str]:
    """The strategies that this system supports.

    >>> import flambeau as torch
    >>> sorted(torch.multiprocessing.get_all_sharing_strategies())
    ['file_descriptor', 'file_system']
    """
    return _all_sharing_strategies


def _set_thread_name(name: str) -> None:
    process_control.set_thread_name(name)


def _get_thread_name() -> str:
    return process_control.get_thread_name()


def __getattr__(name: str) -> Any:
    if name == "_sharing_strategy":
        return shared_memory.get_strategy()
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


init_reductions()
child_setup.install()
