"""Kernels of operators that are the gradient of another one: its vector-Jacobian product.

PyTorch has an operator for most gradients, `hardtanh_backward`. Its arguments are the gradient of the result, those of
the operator, and at times what the operator saved. Here the operator runs again, and the engine runs its backward rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor import Tensor, functions
from ...engine.api import grad
from ...engine.grad_mode import enable_grad, grad_mode, inference_mode
from ...ops.overloads import OpOverload
from ...ops.schemas import FunctionSchema, aten_schema
from ..registry import operator_named

#: arguments that are the gradient of the result, and the shape of the operator's input
_GRADIENTS = ("grad_output", "grad_out", "grad", "grad_in")
_SIZES = ("input_size", "input_sizes", "self_sizes", "sizes")


def vector_jacobian(function: Callable[..., Any], inputs: Sequence[Tensor],
                    cotangents: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """The gradients of a function's inputs, which are differentiable where an argument requires grad.

    Args:
        function: a function of the inputs, with a tensor or several as result.
        cotangents: the gradient of each result, None for none.
    """
    given = [g for g in cotangents if g is not None]
    recorded = grad_mode.get() and any(x._requires_grad for x in (*inputs, *given))
    with inference_mode(False), enable_grad():
        own = [_own(x, recorded) for x in inputs]
        result = function(*own)
        outs = result if isinstance(result, (tuple, list)) else (result,)
        pairs = [(out, g) for out, g in zip(outs, cotangents, strict=False) if g is not None]
        given = [g.clone() if g.is_inference() else g for _, g in pairs]
        found = grad([out for out, _ in pairs], own, given, create_graph=recorded, materialize_grads=True)
    return tuple(found) if recorded else tuple(x.detach() for x in found)


def _own(x: Tensor, recorded: bool) -> Tensor:
    """A tensor with the values of an input that the function is differentiated by."""
    if x.is_inference():
        x = x.clone()
    return x.view_as(x) if recorded and x._requires_grad else x.detach().requires_grad_()


def gradient_of(name: str, forward: str, *, broadcast: bool = False,
                by: Sequence[str] = ("self",)) -> Callable[..., Any]:
    """The kernel of an operator whose arguments have the names of those of the operator that it is the gradient of.

    Args:
        name: the operator, `hardtanh_backward`.
        forward: the overload that it is the gradient of, `hardtanh`.
        broadcast: whether the gradient of the result and the first input are broadcast with each other.
        by: the inputs whose gradients are returned; with several, an argument `output_mask` says which are wanted.
    """
    schema = _schema(name)
    overload: OpOverload | None = None

    def run(*args: Any, **kwargs: Any) -> Any:
        nonlocal overload
        overload = overload or operator_named(f"aten::{forward}")
        bound = arguments(schema, args, kwargs)
        given = next(bound[each] for each in _GRADIENTS if each in bound)
        names = [a.name for a in overload._schema.arguments]
        sizes = next((bound[each] for each in _SIZES if each in bound), None)
        if sizes is not None and by[0] not in bound:
            bound[by[0]] = functions.zeros(tuple(sizes), dtype=given.dtype, device=given.device)
        if broadcast:
            given, bound[by[0]] = functions.broadcast_tensors(given, bound[by[0]])
        mask = bound.get("output_mask", (True,) * len(by))
        wanted = [each for each, needed in zip(by, mask, strict=True) if needed]

        def function(*inputs: Tensor) -> Any:
            values = bound | dict(zip(wanted, inputs, strict=True))
            return overload(**{each: values[each] for each in names if each in values})

        found = iter(vector_jacobian(function, [bound[each] for each in wanted], (given,)))
        outs = tuple(next(found) if needed else None for needed in mask)
        return outs if len(by) > 1 else outs[0]

    return run


def arguments(schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name, with defaults."""
    bound = schema.bind(args, kwargs)
    return {a.name: bound.get(a.name, a.default_value) for a in schema.arguments}


def _schema(name: str) -> FunctionSchema:
    schema = aten_schema(name, "default")
    if schema is None:
        raise ValueError(f"{name} is no operator of PyTorch's")
    return schema


__all__ = ["arguments", "gradient_of", "vector_jacobian"]
