"""The submodules of `torch.distributed` that are left out, with the names that programs take from them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from ..environment.left_out import LeftOut, tree

_Args = ParamSpec("_Args")
_R = TypeVar("_R")

REASON = "flambeau has no accelerators and remote calls"

_P = "torch.distributed"


def _requiring_rpc(func: Callable[_Args, _R]) -> Callable[_Args, _R]:
    """Decorate a function of remote calls, as packages do when they are imported: it needs `init_rpc` before a call."""
    @functools.wraps(func)
    def refuse(*args: _Args.args, **kwargs: _Args.kwargs) -> _R:
        raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.")

    return refuse


def _rpc_is_available() -> bool:
    """Whether there are remote calls: no, as in a PyTorch that was built without them."""
    return False


#: name below `torch.distributed` -> what is in it
_CONTENTS: dict[str, dict[str, Any]] = {
    "autograd": {"classes": "context DistAutogradContext", "functions": "backward get_gradients",
                 "values": {"is_available": _rpc_is_available}},
    "checkpoint.optimizer": {"functions": "load_sharded_optimizer_state_dict"},
    "rpc": {"classes": "BackendType RRef RpcBackendOptions TensorPipeRpcBackendOptions WorkerInfo",
            "functions": "get_rpc_timeout get_worker_info init_rpc rpc_async rpc_sync remote shutdown",
            "values": {"is_available": _rpc_is_available}},
    "rpc.api": {"functions": "_all_gather _barrier",
                "values": {"UNSET_RPC_TIMEOUT": -1.0, "_require_initialized": _requiring_rpc}},
}

MODULES = {name: LeftOut(f"{_P}.{name}", REASON, **contents)
           for name, contents in _CONTENTS.items()}
tree(MODULES)


def left_out(name: str) -> LeftOut:
    """A module that is left out.

    Raises:
        AttributeError: `torch.distributed` has no such module either.
    """
    if name not in MODULES:
        raise AttributeError(f"module '{_P}' has no attribute '{name}'")
    return MODULES[name]


__all__ = ["MODULES", "REASON", "left_out"]
