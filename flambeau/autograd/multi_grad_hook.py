"""Multi-grad hooks: one hook for the gradients of several tensors, called when all or the first are computed."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ..engine.engine import current_graph_task_id, will_execute
from ..engine.nodes.hooks import RemovableHandle
from ..engine.nodes.node import Node
from ..engine.tensor_interface import layer

_MODES = ("all", "any")


class _MultiHandle(RemovableHandle):
    """Removes a hook from several tensors."""

    handles: tuple[RemovableHandle, ...]

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Remove the hook; a removed hook is ignored."""
        for handle in self.handles:
            handle.remove()


def _node_of(tensor: Any) -> Node:
    if not tensor.requires_grad:
        raise AssertionError("Expected gradient function to be set")
    return layer.gradient_edge(tensor)


class _GradientBuffer:
    """The gradients of several tensors, buffered for one hook in each backward pass.

    A pass may compute the gradients of some tensors only: `will_execute` tells their number when the first arrives.
    """

    def __init__(self, tensors: Sequence[Any], fn: Callable[[Sequence[Any]], Any]) -> None:
        self.nodes = [_node_of(x) for x in tensors]
        self.fn = fn
        self.lock = threading.Lock()
        self.gradients: dict[int, list[Any]] = {}  # graph task id -> the gradient of each tensor
        self.pending: dict[int, int] = {}  # graph task id -> number of gradients not yet computed

    def receive(self, position: int, grad: Any) -> None:
        task = current_graph_task_id()
        assert task != -1, "expected this hook to be called inside a backward call"
        with self.lock:
            if task not in self.gradients:
                self.gradients[task] = [None] * len(self.nodes)
                self.pending[task] = sum(map(will_execute, self.nodes))
            self.gradients[task][position] = grad
            self.pending[task] -= 1
            complete = not self.pending[task]
        if complete:
            self.fn(self.gradients[task])
            del self.gradients[task], self.pending[task]


def register_multi_grad_hook(tensors: Sequence[Any], fn: Callable[..., Any], *, mode: str = "all") -> RemovableHandle:
    """Register a hook that is called once in each backward pass, for the gradients of several tensors.

    See https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.register_multi_grad_hook

    Args:
        tensors: tensors that require grad.
        fn: in mode "all" called with the list of gradients when the last one that the pass computes is complete
            (None for tensors whose gradient it does not compute); in mode "any" with the first complete gradient.
        mode: "all" or "any".

    Returns:
        A handle; its `remove()` removes the hook.

    Raises:
        ValueError: `mode` is neither.

    >>> import flambeau as torch
    >>> a, b, c = (torch.tensor(x, requires_grad=True) for x in (1., 2., 3.))
    >>> handle = torch.autograd.graph.register_multi_grad_hook((a, b, c), print)
    >>> (a * b).backward()
    [tensor(2.), tensor(1.), None]
    >>> handle.remove()
    """
    if mode not in _MODES:
        raise ValueError(f"Expects mode to be one of {_MODES} but got {mode}")
    if mode == "all":
        buffer = _GradientBuffer(tensors, fn)
        return _MultiHandle(tuple(x.register_hook(functools.partial(buffer.receive, position))
                                 for position, x in enumerate(tensors)))
    lock = threading.Lock()
    seen: set[int] = set()

    @functools.wraps(fn)
    def first(grad: Any) -> None:
        task = current_graph_task_id()
        assert task != -1, "expected this hook to be called inside a backward call"
        with lock:
            if task in seen:
                return
            seen.add(task)
        fn(grad)

    return _MultiHandle(tuple(x.register_hook(first) for x in tensors if x.requires_grad))


__all__ = ["register_multi_grad_hook"]
