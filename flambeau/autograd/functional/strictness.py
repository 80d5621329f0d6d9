"""Strict mode: errors for derivatives that are zero because the output does not depend on the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from .arguments import Tensors

_REFUSED = " This is not allowed in strict mode."
_REFUSED_WITH_GRAPH = " This is not allowed in strict mode when create_graph=True."
_OUTPUT = "The output of the user-provided function is independent of input {}." + _REFUSED
_JACOBIAN = "The jacobian of the user-provided function is independent of input {}."
_HESSIAN = "The hessian of the user-provided function is independent of input {}."
_PULLED = ("The gradient with respect to the input is independent of entry {} in the grad_outputs when using the "
           "double backward trick to compute forward mode gradients." + _REFUSED)
_PULLED_TWICE = ("The hessian of the user-provided function is independent of entry {} in the grad_jacobian. This is "
                 "not allowed in strict mode as it prevents from using the double backward trick to replace forward "
                 "mode AD.")
JACOBIAN_WITHOUT_GRAPH = _JACOBIAN + _REFUSED_WITH_GRAPH
BLOCK_MISSING = "Output {} of the user-provided function is independent of input {}." + _REFUSED

#: kind of tensor -> the error if it does not require grad
_WITHOUT_GRAPH = {
    "outputs": "Output {} of the user-provided function does not require gradients. The outputs must be computed in a "
               "differentiable manner from the input when running in strict mode.",
    "grad_inputs": "The gradient with respect to input {} is independent of the inputs of the user-provided function. "
                   "This is not allowed in strict mode.",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function with respect to "
                "input {} is independent of the input. This is not allowed in strict mode. You should ensure that "
                "your function is twice differentiable and that the jacobian depends on the inputs (this would be "
                "violated by a linear function for example).",
    "hessian": "The hessian of the user-provided function with respect to input {} is independent of the input. This "
               "is not allowed in strict mode. You should ensure that your function is thrice differentiable and that "
               "the hessian depends on the inputs.",
}

#: stage -> the errors if a gradient is None, and if it does not require grad
_MISSING = {
    "back": (_OUTPUT, JACOBIAN_WITHOUT_GRAPH),
    "back_trick": (_PULLED, JACOBIAN_WITHOUT_GRAPH),
    "double_back": (_JACOBIAN + _REFUSED, _HESSIAN + _REFUSED_WITH_GRAPH),
    "double_back_trick": (_PULLED_TWICE, _HESSIAN + _REFUSED_WITH_GRAPH),
}


def require_graph(values: Sequence[Any], what: str, strict: bool) -> None:
    """Check in strict mode that all values require grad.

    Raises:
        RuntimeError: a value is None or does not require grad.
    """
    if not strict:
        return
    for i, x in enumerate(values):
        if x is None:
            raise RuntimeError(_OUTPUT.format(i))
        if not x._requires_grad:
            raise RuntimeError(_WITHOUT_GRAPH[what].format(i))


def fill_missing(grads: Sequence[Tensor | None], like: Tensors, strict: bool, create_graph: bool,
                 stage: str) -> Tensors:
    """The gradients of a pass, with zeros for None.

    Raises:
        RuntimeError: in strict mode, a gradient is None, or does not require grad under `create_graph`.
    """
    for i, g in enumerate(grads):
        if strict and g is None:
            raise RuntimeError(_MISSING[stage][0].format(i))
        if strict and create_graph and g is not None and not g._requires_grad:
            raise RuntimeError(_MISSING[stage][1].format(i))
    return tuple(fn.zeros_like(x) if g is None else g for g, x in zip(grads, like, strict=True))


__all__ = ["BLOCK_MISSING", "JACOBIAN_WITHOUT_GRAPH", "fill_missing", "require_graph"]
