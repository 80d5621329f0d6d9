"""Recording of operators on sparse tensors: the graph node of a call, whose rule is a function of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...backends.bit_views import resolve
from ...backends.sparse_array import CompressedArray, CooArray, SparseArray, as_array
from ...engine.anomaly_mode import Anomaly, store_traceback
from ...engine.grad_mode import grad_mode, inference
from ...engine.nodes.node import FREED_MESSAGE, Node, NodeType, next_number
from ...engine.saved.modified_in_place import modified_input_message
from ...modes import active_transforms, transform_stack
from ..dispatch.gradient_edge import gradient_edge
from ..tensor import INFERENCE, Tensor, wrap

#: a rule: the cotangent of the output to the cotangents of the inputs
Rule = Callable[[Tensor], Sequence[Any]]


def make(array: Any, cls: type = Tensor) -> Any:
    """A tensor on a sparse array or an array, without a graph."""
    if not isinstance(array, SparseArray):
        return wrap(array, cls)
    out: Any = object.__new__(cls)
    out._array = array
    out._requires_grad = False
    out._node = out._grad = out._counter = out._base = out._accumulator = None
    out._output_nr = 0
    if active_transforms[0]:
        out._transform_depth = len(transform_stack.get())
    if inference.get():
        out._inference, out._counter = True, INFERENCE
    return out


def is_sparse(x: Any) -> bool:
    """Whether a value is a sparse tensor of any layout."""
    return isinstance(x, Tensor) and isinstance(x._array, SparseArray)


def is_coo(x: Any) -> bool:
    """Whether a value is a sparse tensor in coordinate format."""
    return isinstance(x, Tensor) and isinstance(x._array, CooArray)


def is_compressed(x: Any) -> bool:
    """Whether a value is a sparse tensor in a compressed format."""
    return isinstance(x, Tensor) and isinstance(x._array, CompressedArray)


class SparseNode(Node):
    """The node of an operator on sparse tensors. Its rule runs over tensors, recorded only under `create_graph`."""

    __slots__ = ("freed", "rule", "saved")
    rule: Rule | None
    saved: tuple[tuple[Tensor, int], ...]  # the tensors that the rule reads, and their versions

    def vjp(self, cotangents: Any, tensors: bool) -> Any:
        if self.rule is None:
            raise RuntimeError(FREED_MESSAGE)
        self.check_saved()
        if tensors:
            return list(self.rule(cotangents))
        token = grad_mode.set(False)
        try:
            grads = self.rule(make(as_array(cotangents)))  # a rule may have returned a NumPy scalar
        finally:
            grad_mode.reset(token)
        return [None if g is None else resolve(g._array) for g in grads]

    def check_saved(self) -> None:
        for x, version in self.saved:
            current = 0 if x._counter is None else x._counter[0]
            if current != version:
                raise RuntimeError(modified_input_message(x, current, version))

    def release_variables(self) -> None:
        if self.saved:
            self.rule = None
            self.saved = ()

    def name(self) -> str:
        return type(self).__name__


_classes: dict[str, Any] = {}


def _not_implemented_rule(name: str) -> Rule:
    def rule(g: Tensor) -> Sequence[Any]:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return rule


def record(out: Tensor, name: str, inputs: Sequence[Any], rule: Rule | None, saved: Sequence[Any] = (),
           operator: str = "") -> Tensor:
    """Make the node of a call and set it as `grad_fn` of its output, if an input requires grad.

    Args:
        name: the node's name.
        inputs: the differentiable inputs, in the order of the rule's results.
        rule: None: the derivative is not implemented.
        saved: the tensors that the rule reads.
        operator: the operator's name in the error of a derivative that is not implemented.
    """
    if not (grad_mode.get() and out._array.dtype.kind in "fcV"
            and any(isinstance(x, Tensor) and x._requires_grad for x in inputs)):
        return out
    cls = _classes.get(name)
    if cls is None:
        cls = _classes[name] = NodeType(name, (SparseNode,), {"__slots__": ()})
    node = object.__new__(cls)
    required = [isinstance(x, Tensor) and x._requires_grad for x in inputs]
    node.edges = tuple(gradient_edge(x) if need else None for x, need in zip(inputs, required, strict=True))
    numbers = tuple(x._output_nr if isinstance(x, Tensor) else 0 for x in inputs)
    node.edge_outputs = numbers if any(numbers) else None
    node.extra = node.outputs = node.run = None
    node.seq = next_number()
    node.rule = rule or _not_implemented_rule(operator or name)
    node.saved = tuple((x, 0 if x._counter is None else x._counter[0]) for x in saved if isinstance(x, Tensor))
    if Anomaly.enabled:
        store_traceback(node)
    out._requires_grad = True
    out._node = node
    return out


def needs(x: Any) -> bool:
    """Whether a gradient is requested of an input."""
    return isinstance(x, Tensor) and x._requires_grad


__all__ = ["Rule", "SparseNode", "is_compressed", "is_coo", "is_sparse", "make", "needs", "record"]
