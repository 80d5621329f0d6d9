"""Graph nodes: one recorded application of an operator, and the edges to the nodes of its inputs.

A node is created after the nodes that it points to, so sequence numbers (`_sequence_nr`) order the graph
topologically: highest first is a valid order for backward, and PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from ...errstate import IGNORE, reset_state, set_state
from .hook_calls import call_post_hooks, call_pre_hooks, call_tensor_hooks, materialize
from .hooks import HookDict, NodeExtra, RemovableHandle

next_number: Callable[[], int] = count().__next__

FREED_MESSAGE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
    "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
    "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
    "saved tensors after calling backward."
)


class NodeType(type):
    """The class of node classes: PyTorch's live in no module that a user can name, so a repr is the bare name.

    The nodes of `autograd.Function` are different: their module is `torch.autograd.function`.
    """

    def __repr__(cls) -> str:
        return f"<class '{cls._prefix()}{cls.__name__}'>"

    def _prefix(cls) -> str:
        return f"{cls.__module__}." if cls.__module__.endswith(".autograd.function") else ""


class Node(metaclass=NodeType):
    """A node of the graph: a vector-Jacobian product from the cotangents of its outputs to those of its inputs.

    See https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.Node

    >>> import flambeau as torch
    >>> x = torch.tensor(2., requires_grad=True)
    >>> node = (x * x).grad_fn
    >>> node.name(), node(torch.tensor(1.))
    ('MulBackward0', (tensor(2., grad_fn=<MulBackward0>), tensor(2., grad_fn=<MulBackward0>)))
    """

    __slots__ = ("__weakref__", "edge0", "edge1", "edge_outputs", "extra", "more_edges", "n_edges", "outputs", "run",
                 "seq")

    # The node of each input (None where no gradient is required). The first two have slots of their own: a tuple
    # would be one more object for the garbage collector to traverse, three times a node's own share in a long graph.
    edge0: Node | None
    edge1: Node | None
    more_edges: tuple[Node | None, ...]
    n_edges: int
    edge_outputs: tuple[int, ...] | None  # which output of that node each input was; None where all are the first
    outputs: tuple[tuple[tuple[int, ...], np.dtype], ...] | None  # shapes and dtypes, where there are several outputs
    run: Callable[[Any, Any], Any] | None  # the specialised rule on arrays; None where only `vjp` handles the node
    seq: int
    extra: NodeExtra | None
    is_leaf = False
    renumbered = False  # whether a program changed sequence numbers, which then are no topological order
    runs_undefined = False  # whether it runs even if no cotangent is defined
    materializes_undefined = True  # whether undefined cotangents of several outputs become zeros
    takes_undefined = False  # whether that is left out, for a declared operator

    @property
    def edges(self) -> tuple[Node | None, ...]:
        """The node of each input; None where no gradient is required."""
        n = self.n_edges
        if n == 2:
            return (self.edge0, self.edge1)
        if n == 1:
            return (self.edge0,)
        return (self.edge0, self.edge1, *self.more_edges) if n else ()

    @edges.setter
    def edges(self, edges: tuple[Node | None, ...]) -> None:
        n = self.n_edges = len(edges)
        self.edge0 = edges[0] if n else None
        self.edge1 = edges[1] if n > 1 else None
        self.more_edges = edges[2:]

    def vjp(self, cotangents: Any, tensors: bool) -> Any:
        """The cotangents of the inputs, one each (None where undefined).

        Args:
            cotangents: of the output; a list where there are several outputs.
            tensors: whether cotangents are tensors, whose operators are recorded; else arrays.
        """
        raise NotImplementedError

    def release_variables(self) -> None:
        """Free the saved values."""

    def check_saved(self) -> None:
        """Raise if the saved values were freed or modified in place, though no cotangent is defined."""

    def make_extra(self) -> NodeExtra:
        """The node's rarely used state, created on first use; the node leaves the fast path, which ignores it."""
        if self.extra is None:
            self.extra = NodeExtra()
            self.run = None
        return self.extra

    # ----- PyTorch's interface -----

    def name(self) -> str:
        """The name of the operator's backward, such as `MulBackward0`."""
        return type(self).__name__

    def __repr__(self) -> str:
        return f"<{type(self)._prefix()}{self.name().rpartition('::')[2]} object at {id(self):#x}>"

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The edges: the node of each input, and which of that node's outputs the input was."""
        numbers = self.edge_outputs or (0,) * len(self.edges)
        visible = self.visible_edges()
        edges = tuple(zip([None if node is None else node.public() for node in self.edges], numbers, strict=True))
        return edges if visible is None else tuple((None, 0) if i is None else edges[i] for i in visible)

    def visible_edges(self) -> Sequence[int | None] | None:
        """The inputs that have an edge in `next_functions` (indices and masks have none); None for all.

        None among them stands for an input that the operator lacks and PyTorch's has.
        """
        return None

    def public(self) -> Node:
        """The node under the class that bears its name."""
        return self

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's own data about this node."""
        extra = self.make_extra()
        if extra.metadata is None:
            extra.metadata = {}
        return extra.metadata

    @property
    def _input_metadata(self) -> list[Any]:
        return list(self.outputs or ())

    def _sequence_nr(self) -> int:
        return self.seq

    def _set_sequence_nr(self, number: int) -> None:
        Node.renumbered = True
        self.seq = number

    @property
    def requires_grad(self) -> bool:
        return True

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after this node ran; a tuple that it returns replaces `grad_inputs`."""
        extra = self.make_extra()
        if extra.post_hooks is None:
            extra.post_hooks = HookDict()
        handle = RemovableHandle(extra.post_hooks)
        extra.post_hooks[handle.id] = fn
        return handle

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before this node runs; a tuple that it returns replaces `grad_outputs`."""
        extra = self.make_extra()
        if extra.pre_hooks is None:
            extra.pre_hooks = HookDict()
        handle = RemovableHandle(extra.pre_hooks)
        extra.pre_hooks[handle.id] = fn
        return handle

    def register_tensor_hook(self, output: int, hooks: HookDict) -> None:
        """Register the hooks of the tensor that is output number `output`."""
        extra = self.make_extra()
        if extra.tensor_hooks is None:
            extra.tensor_hooks = {}
        extra.tensor_hooks[output] = hooks

    def __call__(self, *cotangents: Any) -> Any:
        """Call the node as a function: cotangents of the outputs to cotangents of the inputs."""
        grads = call_node(self, cotangents)
        return grads[0] if len(grads) == 1 else tuple(grads)


def call_node(node: Node, cotangents: Sequence[Any]) -> list[Any]:
    """Evaluate one node on tensors outside of a backward pass, hooks included; recorded if grad mode is on.

    Raises:
        TypeError: the number of cotangents is not that of the outputs.
    """
    several = node.outputs is not None
    expected = len(node.outputs) if node.outputs is not None else 1
    if len(cotangents) != expected:
        raise TypeError(f"{node.name()} expected {expected} arguments, got {len(cotangents)} instead")
    g: Any = list(cotangents) if several else cotangents[0]
    extra = node.extra
    if extra is not None:
        g = call_tensor_hooks(node, extra, g, True)
        if extra.pre_hooks and g is not None:
            g = call_pre_hooks(node, extra, g, True)
    if several and node.materializes_undefined and g is not None:
        g = materialize(node, g, True)
    token = set_state(IGNORE)
    try:
        grads = (None,) * len(node.edges) if g is None else node.vjp(g, True)
    finally:
        reset_state(token)
    if extra is not None and extra.post_hooks:
        grads = call_post_hooks(node, extra, grads, g, True)
    return list(grads)


def check_gradient_shape(node: Node, index: int, have: Sequence[int], expected: Sequence[int]) -> None:
    """Refuse a node's gradient whose shape cannot be summed to that of the node's input.

    Raises:
        RuntimeError: the input's shape does not broadcast to the gradient's.
    """
    lead = len(have) - len(expected)
    if lead < 0 or any(size not in (1, have[i + lead]) for i, size in enumerate(expected)):
        raise RuntimeError(f"Function {node.name()} returned an invalid gradient at index {index} - got {list(have)} "
                           f"but expected shape compatible with {list(expected)}")


__all__ = ["FREED_MESSAGE", "Node", "NodeType", "call_node", "check_gradient_shape", "next_number"]
