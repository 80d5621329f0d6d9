"""Backward passes of one stage and microbatch: whole, or gradients of inputs first and of weights later."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..._tensor import Tensor
from ..._tensor.creation.constants import ones_like
from ...autograd.graph import get_gradient_edge
from ...engine.api import GradientEdge, backward, grad

Gradients = tuple["Tensor | None", ...]


def _pairs(output: Any, gradient: Any) -> Iterable[tuple[Tensor, Tensor | None]]:
    """The tensors of a stage's result that a pass can start from, with their gradients."""
    if isinstance(output, Tensor):
        if output.requires_grad:
            if gradient is not None and not isinstance(gradient, Tensor):
                raise AssertionError(f"Expected Tensor or None gradient but got {type(gradient)}")
            yield output, gradient
    elif isinstance(output, (tuple, list)) and gradient is not None:
        if not isinstance(gradient, (tuple, list)) or len(output) != len(gradient):
            raise AssertionError(f"a result of {len(output)} values needs as many gradients, got {gradient!r}")
        for one, its in zip(output, gradient, strict=True):
            yield from _pairs(one, its)
    elif isinstance(output, dict) and gradient is not None:
        if not isinstance(gradient, dict) or output.keys() != gradient.keys():
            raise AssertionError(f"a result with the keys {set(output)} needs gradients with them, got {gradient!r}")
        for key in output:
            yield from _pairs(output[key], gradient[key])


def _describe(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"Tensor({value.shape}, grad={value.requires_grad}, dtype={value.dtype})"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(_describe, value))})"
    return str(value)


def _failure(what: str, output: Any, gradients: Any, inputs: Any) -> RuntimeError:
    return RuntimeError(f"\n        Failed to run {what}:\n        Stage output: {_describe(output)}\n        "
                        f"Output gradient: {_describe(gradients)}\n        Input: {_describe(inputs)}\n        ")


def stage_backward(stage_output: Any, output_grads: Any, input_values: Sequence[Any],
                   outputs_with_grads_idxs: list[int] | None = None) -> Gradients:
    """Accumulate the gradients of a stage's parameters, and return those of its inputs.

    Args:
        stage_output: the stage's result, or the loss.
        output_grads: its gradients, None for a loss.
        input_values: the inputs; their `grad` is None afterwards.
        outputs_with_grads_idxs: the results to start from; all if None.

    Returns:
        A gradient for each input, None where it has none.

    Raises:
        RuntimeError: the pass failed.
    """
    if outputs_with_grads_idxs is not None:
        stage_output = [stage_output[i] for i in outputs_with_grads_idxs]
        output_grads = [output_grads[i] for i in outputs_with_grads_idxs]
    try:
        pairs = list(_pairs(stage_output, output_grads))
        backward([output for output, _ in pairs], [gradient for _, gradient in pairs])
        gradients: list[Tensor | None] = []
        for value in input_values:
            gradients.append(value.grad if isinstance(value, Tensor) else None)
            if isinstance(value, Tensor):
                value.grad = None
    except Exception as error:
        raise _failure("stage backward", stage_output, output_grads, input_values) from error
    return tuple(gradients)


class WeightGradients:
    """The gradients of a stage's weights, which wait for `run`.

    The pass for the inputs leaves the gradients that reach the *branching* nodes: those on a path to an input that also
    lead to a weight off that path. From there a weight's gradient is one formula away, and no gradient of an
    activation is computed twice.

    Args:
        outputs: the results that the pass for the inputs starts from.
        gradients: their gradients, None for a loss.
        inputs: the inputs.
        weights: the parameters.
    """

    def __init__(self, outputs: Sequence[Tensor], gradients: Sequence[Tensor | None], inputs: Sequence[Tensor],
                 weights: Iterable[Tensor]) -> None:
        self._weights = [weight for weight in weights if weight.requires_grad]
        self._apart: list[tuple[GradientEdge, Tensor | None]] = []  # results that the inputs do not influence
        self._apart_weights: set[int] = set()
        self._reached = self._branches(outputs, gradients, inputs)
        self._gradients: dict[Any, Any] = {}
        self._handles = [node.register_prehook(self._keep(node)) for node in self._reached]

    def _keep(self, node: Any) -> Any:
        def keep(gradients: Any) -> None:
            self._gradients[node] = gradients

        return keep

    def _branches(self, outputs: Sequence[Tensor], gradients: Sequence[Tensor | None], inputs: Sequence[Tensor]
                  ) -> dict[Any, set[int]]:
        """Branching node -> the numbers of the weights that it leads to off the paths to the inputs."""
        weights = {get_gradient_edge(weight).node: i for i, weight in enumerate(self._weights)}
        ends = {get_gradient_edge(each).node for each in inputs if each.requires_grad}
        order: list[Any] = []  # each node after those that it leads to
        done: set[Any] = set()
        stack = [(get_gradient_edge(output).node, False) for output in outputs]
        while stack:
            node, entered = stack.pop()
            if entered:
                order.append(node)
            elif node not in done:
                done.add(node)
                stack.append((node, True))
                if node not in ends:
                    stack += [(next_node, False) for next_node, _ in node.next_functions if next_node is not None]
        on_path: set[Any] = set()
        leads: dict[Any, set[int]] = {}
        branches: dict[Any, set[int]] = {}
        for node in order:
            successors = [] if node in ends else [each for each, _ in node.next_functions if each is not None]
            aside: set[int] = set()
            for each in successors:
                if each not in on_path:
                    aside |= leads[each]
            leads[node] = aside | ({weights[node]} if node in weights else set())
            if node in ends or any(each in on_path for each in successors):
                on_path.add(node)
                if aside:
                    branches[node] = aside
        for output, gradient in zip(outputs, gradients, strict=True):
            edge = get_gradient_edge(output)
            if edge.node not in on_path and leads[edge.node]:
                self._apart.append((edge, ones_like(output) if gradient is None else gradient))
                self._apart_weights |= leads[edge.node]
        return branches

    def release(self) -> None:
        """Stop to watch the pass for the inputs."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _groups(self) -> Iterable[tuple[list[Any], set[int]]]:
        """Branching nodes that share weights, with these."""
        groups: list[tuple[list[Any], set[int]]] = []
        for node in self._gradients:
            nodes, numbers = [node], set(self._reached[node])
            for other in [group for group in groups if group[1] & numbers]:
                groups.remove(other)
                nodes, numbers = other[0] + nodes, other[1] | numbers
            groups.append((nodes, numbers))
        return groups

    def run(self) -> None:
        """Accumulate the gradients of the weights."""
        if self._apart:
            backward([edge for edge, _ in self._apart], [gradient for _, gradient in self._apart], retain_graph=True,
                     inputs=[self._weights[i] for i in sorted(self._apart_weights)])
        for nodes, numbers in self._groups():
            # a weight that several nodes lead to: what reaches a later node on the way from an earlier one is in what
            # was kept, so that it must not count again
            handles = [node.register_prehook(lambda _, kept=self._gradients[node]: kept) for node in nodes] \
                if len(nodes) > 1 else []
            edges, gradients = [], []
            for node in nodes:
                for i, gradient in enumerate(self._gradients[node]):
                    if gradient is not None:
                        edges.append(GradientEdge(node, i))
                        gradients.append(gradient)
            try:
                if edges:
                    backward(edges, gradients, retain_graph=True, inputs=[self._weights[i] for i in sorted(numbers)])
            finally:
                for handle in handles:
                    handle.remove()
        self._gradients, self._reached, self._apart = {}, {}, []


def stage_backward_input(stage_outputs_or_loss: Sequence[Tensor], output_grads: Sequence[Tensor | None] | None,
                         input_values: Sequence[Any], weights: Iterable[Tensor]) -> tuple[Gradients, WeightGradients]:
    """The gradients of a stage's inputs, and what is needed for those of its weights.

    Args:
        stage_outputs_or_loss: the stage's results, or the loss.
        output_grads: their gradients, None for a loss.
        input_values: the inputs.
        weights: the parameters.

    Returns:
        A gradient for each input, None where it has none; the gradients of the weights, which wait.

    Raises:
        RuntimeError: the pass failed.
    """
    try:
        every = output_grads if output_grads is not None else [None] * len(stage_outputs_or_loss)
        pairs = [(output, gradient) for output, gradient in zip(stage_outputs_or_loss, every, strict=True)
                 if output.requires_grad]
        outputs = [output for output, _ in pairs]
        sought = [value for value in input_values if isinstance(value, Tensor) and value.requires_grad]
        given = [gradient for _, gradient in pairs]
        waiting = WeightGradients(outputs, given, sought, weights)
        try:
            found = iter(grad(outputs, sought, given, retain_graph=True,
                              allow_unused=True) if outputs and sought else [None] * len(sought))
        finally:
            waiting.release()
        wanted = {id(value) for value in sought}
        return tuple(next(found) if id(value) in wanted else None for value in input_values), waiting
    except Exception as error:
        raise _failure("stage backward input", stage_outputs_or_loss, output_grads, input_values) from error


__all__ = ["Gradients", "WeightGradients", "stage_backward", "stage_backward_input"]
