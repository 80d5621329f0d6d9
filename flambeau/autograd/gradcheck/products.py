"""Analytical Jacobians and their products with vectors, by reverse mode and by forward mode.

A Jacobian has the shape (elements of the input, elements of the output), as in `differences`: reverse mode computes
its columns, forward mode its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.dispatch.dual_tensors import dual_level, make_dual, unpack_dual
from ...engine.api import grad
from .differences import as_tuple, positions
from .messages import NOT_REENTRANT, GradcheckError


def differentiated(inputs: Sequence[Any]) -> list[int]:
    """The indices of the inputs to differentiate by: the tensors that require grad."""
    return [k for k, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]


# ----- reverse mode -----

def pulled_back(output: Tensor, inputs: Sequence[Tensor], cotangent: Tensor) -> tuple[Any, ...]:
    """The gradients of the inputs, None where the output does not depend on them; the graph is retained."""
    return grad(output, inputs, cotangent, retain_graph=True, allow_unused=True)


class Gradients:
    """The gradients for several cotangents, and whether their shapes and dtypes are those of the inputs."""

    def __init__(self, inputs: Sequence[Tensor], rows: Sequence[Sequence[Any]], size: int) -> None:
        self.types_fit = all(g is None or g.dtype == x.dtype for row in rows for g, x in zip(row, inputs, strict=True))
        self.sizes_fit = all(g is None or g.shape == x.shape for row in rows for g, x in zip(row, inputs, strict=True))
        self.jacobians: list[Tensor] = []
        for j, x in enumerate(inputs):
            jacobian = fn.zeros(x.numel(), size, dtype=x.dtype, device=x.device)
            for column, row in enumerate(rows):
                if row[j] is not None and row[j].numel() == x.numel():
                    jacobian[:, column] = row[j].detach().reshape(-1)
            self.jacobians.append(jacobian)

    def agree(self, other: Gradients, tolerance: float) -> bool:
        """Whether no element differs by more than `tolerance`."""
        return not any(a.numel() and bool((a - b).abs().max() > tolerance)
                       for a, b in zip(self.jacobians, other.jacobians, strict=True))


def gradients(inputs: Sequence[Any], output: Tensor, v: Tensor | None = None) -> Gradients:
    """The Jacobians of one output or, with a cotangent `v`, the column v^T J of each."""
    tensors = [inputs[k] for k in differentiated(inputs)]
    if v is not None:
        rows = [pulled_back(output, tensors, v.reshape(output.shape))]
        return Gradients(tensors, rows, 1)
    rows = []
    for at in positions(output.shape):
        unit = fn.zeros(output.shape, dtype=output.dtype, device=output.device)
        unit[at] = 1
        rows.append(pulled_back(output, tensors, unit))
    return Gradients(tensors, rows, output.numel())


def checked_jacobians(inputs: Sequence[Any], output: Tensor, nondet_tol: float, check_dtypes: bool,
             v: Tensor | None = None) -> list[Tensor]:
    """The Jacobians of one output (times `v`), computed twice and compared.

    Raises:
        GradcheckError: two runs differ by more than `nondet_tol`; a gradient has another shape than its input, or,
            with `check_dtypes`, another dtype.
    """
    first, second = gradients(inputs, output, v), gradients(inputs, output, v)
    if check_dtypes and not (first.types_fit and second.types_fit):
        raise GradcheckError("Gradient has dtype mismatch")
    if not (first.sizes_fit and second.sizes_fit):
        raise GradcheckError("Analytical gradient has incorrect size")
    if not first.agree(second, nondet_tol):
        raise GradcheckError(NOT_REENTRANT.format(nondet_tol))
    return first.jacobians


# ----- forward mode -----

def pushed_forward(function: Callable[..., Any], inputs: Sequence[Any], k: int, tangent: Tensor) -> list[Any]:
    """(value, tangent or None) of each output, for a tangent of input `k`.

    A dual level must be open.
    """
    duals = [x.detach() if isinstance(x, Tensor) and x.requires_grad else x for x in inputs]
    for other in differentiated(inputs):
        if other != k:  # zero tangents: all inputs are dual tensors
            duals[other] = make_dual(duals[other], fn.zeros_like(duals[other]))
    duals[k] = make_dual(duals[k], tangent.clone())  # a copy, so that the function sees no view
    return [unpack_dual(out) for out in as_tuple(function(*duals))]


def directional(function: Callable[..., Any], inputs: Sequence[Any], k: int, tangent: Tensor,
                check_dtypes: bool) -> list[Tensor]:
    """J u of each output, flat, for a tangent u of input `k`; zeros for outputs without a tangent.

    Raises:
        GradcheckError: with `check_dtypes`, a tangent is real and its value complex, or vice versa.
    """
    products = []
    for value, t in pushed_forward(function, inputs, k, tangent):
        if t is None:
            products.append(fn.zeros(value.numel(), dtype=value.dtype, device=value.device))
            continue
        if check_dtypes and value.is_complex() != t.is_complex():
            raise GradcheckError("Forward AD gradient has dtype mismatch.")
        products.append(t.detach().reshape(-1))
    return products


def forward_jacobians(function: Callable[..., Any], inputs: Sequence[Any], k: int, check_dtypes: bool) -> list[Tensor]:
    """The Jacobian of each output with respect to input `k`, row by row."""
    x = inputs[k]
    rows = []
    with dual_level():
        for at in positions(x.shape):
            unit = fn.zeros_like(x.detach())
            unit[at] = 1
            rows.append(directional(function, inputs, k, unit, check_dtypes))
    if not rows:
        return [fn.zeros(0, out.numel(), dtype=out.dtype, device=out.device) for out in as_tuple(function(*inputs))]
    return [fn.stack(column) for column in zip(*rows, strict=True)]
