"""Resolution of conjugate and negative bits: the inputs of operators that compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...backends.bit_views import BitView, resolve
from ...modes import active_tracer, special
from ..tensor import Tensor, wrap
from .gradient_edge import gradient_edge


def resolved(x: Any) -> Any:
    """A copy of a tensor with bits, with their effect in its memory and the gradient edge of the tensor itself.

    Anything else is returned as it is.
    """
    if not isinstance(x, Tensor) or not isinstance(x._array, BitView):
        return x
    out: Tensor = wrap(resolve(x._array))
    if special[0] and (tracer := active_tracer.get()) is not None:
        tracer.on_copy(x, out)
    if x._counter is None:
        x._counter = [0]
    out._counter = x._counter
    if x._inference:
        out._inference = True
    if x._requires_grad:
        edge = gradient_edge(x)
        if edge is not None:
            out._requires_grad, out._node, out._output_nr = True, edge, x._output_nr
    if x._tangents is not None:
        out._tangents = {level: resolved(tangent) for level, tangent in x._tangents.items()}
    out._transform_depth = x._transform_depth
    return out


def resolved_inputs(inputs: Sequence[Any]) -> Sequence[Any]:
    """The inputs of an operator, those with bits resolved."""
    for x in inputs:
        if isinstance(x, Tensor) and isinstance(x._array, BitView):
            return [resolved(each) for each in inputs]
    return inputs


__all__ = ["resolved", "resolved_inputs"]
