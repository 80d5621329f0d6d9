"""PyTorch's base classes of tests with several ranks: processes that are forked, and threads with process groups each.

A process that is started anew imports the library and PyTorch's test machinery, for seconds; a forked one has them. In
tests whose ranks are threads each thread has its own registry of process groups, by a class of registries that looks up
the thread's own one.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
import threading
from types import ModuleType
from typing import Any

#: the environment variable under which processes are started anew, as by PyTorch
SPAWN = "FLAMBEAU_UPSTREAM_SPAWN"


def with_ranks() -> bool:
    """Whether the file that was loaded has tests with several ranks."""
    return "torch.testing._internal.common_distributed" in sys.modules


def fork_processes() -> None:
    """Let `MultiProcessTestCase` fork its processes, if nothing else is asked for."""
    module = sys.modules["torch.testing._internal.common_distributed"]
    case = getattr(module, "MultiProcessTestCase", None)
    if isinstance(case, type) and SPAWN not in os.environ:
        case._spawn_processes = _fork  # type: ignore[attr-defined]


def _fork(test: Any) -> None:
    test._start_processes(multiprocessing.get_context("fork").Process)


def _worlds() -> tuple[Any, type]:
    """The registry of process groups, and a class for it under which each thread has another one."""
    shared = importlib.import_module("flambeau.c10d.world")

    class ThreadWorlds(shared.World):  # type: ignore[misc, name-defined]
        __test__ = False

        def __getattribute__(self, name: str) -> Any:
            return object.__getattribute__(self, name) if name == "__class__" else getattr(_own(shared.World), name)

        def __setattr__(self, name: str, value: Any) -> None:
            setattr(_own(shared.World), name, value)

    return shared.world, ThreadWorlds


_local = threading.local()


def _own(made: type) -> Any:
    if not hasattr(_local, "world"):
        _local.world = made()
    return _local.world


def divide_worlds(module: ModuleType) -> None:
    """Give `multi_threaded_pg` functions that replace the registry of process groups here."""
    vars(module).update(_install_threaded_pg=_install_threaded_pg, _uninstall_threaded_pg=_uninstall_threaded_pg)


def _install_threaded_pg() -> Any:
    world, threaded = _worlds()
    object.__setattr__(world, "__class__", threaded)
    return world


def _uninstall_threaded_pg() -> None:
    world, _ = _worlds()
    object.__setattr__(world, "__class__", importlib.import_module("flambeau.c10d.world").World)


__all__ = ["SPAWN", "divide_worlds", "fork_processes", "with_ranks"]
