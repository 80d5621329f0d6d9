"""One hook for the gradients of several tensors: called when all of them, or the first, were computed."""

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


class MultiHandle(RemovableHandle):
    """Takes the hook away from all the tensors."""

    handles: tuple[RemovableHandle, ...]

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Take the hook away; nothing happens if it is gone already."""
        for handle in self.handles:
            handle.remove()


def _node_of(tensor: Any) -> Node:
    if not tensor.requires_grad:
        raise AssertionError("Expected gradient function to be set")
    return layer.gradient_edge(tensor)


class _Gathering:
    """The gradients of several tensors, gathered for one hook in each backward pass.

    Some of the tensors may not take part in a pass: how many will is asked of the engine when
    the first gradient arrives.
    """

    def __init__(self, tensors: Sequence[Any], fn: Callable[[Sequence[Any]], Any]) -> None:
        self.nodes = [_node_of(x) for x in tensors]
        self.fn = fn
        self.lock = threading.Lock()
        self.arrived: dict[int, list[Any]] = {}  # pass -> a gradient for each tensor
        self.missing: dict[int, int] = {}  # pass -> how many have yet to come

    def receive(self, place: int, grad: Any) -> None:
        run = current_graph_task_id()
        assert run != -1, "expected this hook to be called inside a backward call"
        with self.lock:
            if run not in self.arrived:
                self.arrived[run] = [None] * len(self.nodes)
                self.missing[run] = sum(map(will_execute, self.nodes))
            self.arrived[run][place] = grad
            self.missing[run] -= 1
            complete = not self.missing[run]
        if complete:
            self.fn(self.arrived[run])
            del self.arrived[run], self.missing[run]


def register_multi_grad_hook(tensors: Sequence[Any], fn: Callable[..., Any], *, mode: str = "all") -> RemovableHandle:
    """Call a hook once in each backward, for the gradients of several tensors.

    See https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.register_multi_grad_hook

    Args:
        tensors: which must require grad.
        fn: in mode "all" called with a list of the gradients, in the tensors' order, when the last one that this
            backward computes has arrived (None for the others); in mode "any" with the first that arrives.
        mode: "all" or "any".

    Returns:
        A handle whose `remove()` takes the hook away.

    Raises:
        ValueError: another mode.

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
        gathering = _Gathering(tensors, fn)
        return MultiHandle(tuple(x.register_hook(functools.partial(gathering.receive, place))
                                 for place, x in enumerate(tensors)))
    lock = threading.Lock()
    seen: set[int] = set()

    @functools.wraps(fn)
    def first(grad: Any) -> None:
        run = current_graph_task_id()
        assert run != -1, "expected this hook to be called inside a backward call"
        with lock:
            if run in seen:
                return
            seen.add(run)
        fn(grad)

    return MultiHandle(tuple(x.register_hook(first) for x in tensors if x.requires_grad))


__all__ = ["register_multi_grad_hook"]
