"""Stub for the names of PyTorch's C++ module that are aliases of public names."""

from __future__ import annotations

import importlib
import weakref
from typing import Any

import torch

from ..placeholder import Placeholder

has_lapack = True


class _WeakTensorRef:
    """A weak reference that knows only whether its tensor is gone."""

    def __init__(self, tensor: Any) -> None:
        self.reference = weakref.ref(tensor)

    def expired(self) -> bool:
        return self.reference() is None


def is_grad_enabled() -> bool:
    """The public function of that name."""
    return torch.is_grad_enabled()


def _current_graph_task_id() -> int:
    """The number of the backward pass that runs."""
    from flambeau.engine.engine import current_graph_task_id

    return current_graph_task_id()


def _will_engine_execute_node(node: Any) -> bool:
    """Whether the backward pass that runs will run a node."""
    from flambeau.autograd.graph import Node
    from flambeau.engine.engine import will_execute

    if not isinstance(node, Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    return will_execute(node)


def _cuda_setStream(stream_id: int, device_index: int, device_type: int) -> None:
    """Make a stream the current one of its device."""
    torch.cuda.set_stream(torch.cuda.Stream(stream_id=stream_id, device_index=device_index, device_type=device_type))


def _cuda_setDevice(device: int) -> None:
    """The public function of that name."""
    torch.cuda.set_device(device)


def _cuda_clearCublasWorkspaces() -> None:
    """Nothing is kept."""


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name in ("_functions", "_autograd"):
        return importlib.import_module(f"torch._C.{name}")
    return Placeholder(f"torch._C.{name}", internal=True)
