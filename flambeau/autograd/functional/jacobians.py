"""Whole Jacobians and Hessians: `jacobian` and `hessian`.

A row at a time by backward passes; or, vectorized, all rows in one backward pass, or all
columns in one forward pass, over a batch of unit vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.dispatch.batched_tensor import level_of
from ..._tensor.dispatch.dual_tensors import dual_level, make_dual, unpack_dual
from ...engine.grad_mode import enable_grad
from ...func.batches import hidden, shown
from ...func.jacobians import basis
from .arguments import Tensors, as_tuple, blocks, entered, gradients, left
from .strictness import BLOCK_MISSING, JACOBIAN_WITHOUT_GRAPH, must_have_graph

_STRATEGIES = ("forward-mode", "reverse-mode")
_OUTPUTS = "outputs of the user-provided function"


def jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
             vectorize: bool = False, strategy: str = "reverse-mode") -> Any:
    """The function's Jacobian.

    J[i, j] = d f_i / d x_j, shaped (*output shape, *input shape).
    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.jacobian.html

    Args:
        func: takes tensors and returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        create_graph: let the Jacobian be differentiated, also by `inputs`.
        strict: an output that does not depend on an input is an error, and not a block of zeros.
        vectorize: all rows, or columns, at once.
        strategy: "reverse-mode", by rows; or "forward-mode", by columns, which must be vectorized.

    Returns:
        One block; a tuple of blocks where inputs or outputs are a tuple; a tuple (outputs) of tuples (inputs) where
        both are. Forward mode gives lists for tuples, as PyTorch's does.

    Raises:
        TypeError: inputs or outputs are no tensors.
        RuntimeError: `strict` refuses, or is asked for together with `vectorize` or forward mode.
        NotImplementedError: forward mode with `create_graph`, or not vectorized.

    >>> import flambeau as torch
    >>> torch.autograd.functional.jacobian(lambda x, y: x * y, (torch.tensor([1., 2.]), torch.tensor(3.)))
    (tensor([[3., 0.],
            [0., 3.]]), tensor([1., 2.]))
    """
    if strategy not in _STRATEGIES:
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function '
                             'has more outputs than inputs, "forward-mode" tends to be more performant. Otherwise, '
                             'prefer to use "reverse-mode".')
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not '
                'supported together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.')
        if strict:
            raise RuntimeError(
                'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported '
                'together (yet). Please either set `strict=False` or `strategy="reverse-mode"`.')
        return _by_columns(func, inputs, vectorize)
    with enable_grad():
        several, given = as_tuple(inputs, "inputs", "jacobian")
        given = entered(given, create_graph)
        several_out, outputs = as_tuple(func(*given), _OUTPUTS, "jacobian")
        must_have_graph(outputs, "outputs", strict)
        if not vectorize:
            rows = _one_by_one(outputs, given, create_graph, strict)
        elif strict:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
                "Please either set `strict=False` or `vectorize=False`.")
        else:
            rows = _all_rows(outputs, given, create_graph)
    return blocks(left(rows, create_graph), several_out, several)


def _one_by_one(outputs: Tensors, inputs: Tensors, create_graph: bool, strict: bool) -> tuple[Tensors, ...]:
    """Blocks [output][input]: a backward pass for each element of the outputs."""
    found = []
    for i, out in enumerate(outputs):
        rows: list[list[Tensor]] = [[] for _ in inputs]
        flat = out.reshape(-1)
        for k in range(out._array.size):
            pulled = gradients((flat[k],), inputs, retain_graph=True, create_graph=create_graph)
            for j, (row, g, x) in enumerate(zip(rows, pulled, inputs, strict=True)):
                if strict and g is None:
                    raise RuntimeError(BLOCK_MISSING.format(i, j))
                if strict and create_graph and g is not None and not g._requires_grad:
                    raise RuntimeError(JACOBIAN_WITHOUT_GRAPH.format(i))
                row.append(fn.zeros_like(x) if g is None else g)
        found.append(tuple(fn.stack(row).view((*out._array.shape, *x._array.shape))
                           for row, x in zip(rows, inputs, strict=True)))
    return tuple(found)


def _all_rows(outputs: Tensors, inputs: Tensors, create_graph: bool) -> tuple[Tensors, ...]:
    """Blocks [output][input]: one backward pass with a batch of all unit cotangents."""
    if not outputs:
        raise AssertionError("Expected at least one tensor")
    sizes = [out._array.size for out in outputs]
    units = [unit.reshape(sum(sizes), size) for unit, size in zip(basis(outputs, 0, sum(sizes)), sizes, strict=True)]
    pulled = gradients([out.reshape(-1) for out in outputs], inputs, units, create_graph=create_graph, batched=True)
    columns = [fn.zeros_like(x).expand((sum(sizes), *x._array.shape)) if g is None else g
               for g, x in zip(pulled, inputs, strict=True)]
    parts = [fn.split(column, sizes) for column in columns]
    return tuple(tuple(part[i].view((*out._array.shape, *x._array.shape))
                       for part, x in zip(parts, inputs, strict=True)) for i, out in enumerate(outputs))


def _by_columns(func: Callable[..., Any], inputs: Any, vectorize: bool) -> Any:
    """The Jacobian by one forward pass with a batch of all unit tangents."""
    several, given = as_tuple(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError("Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly "
                                  "implemented for `vectorize=True`.")
    sizes = [x._array.size for x in given]
    with level_of(sum(sizes), "error") as level, dual_level():
        units = basis(given, 0, sum(sizes))
        duals = [make_dual(x, hidden(unit, 0, level)) for x, unit in zip(given, units, strict=True)]
        several_out, outputs = as_tuple(func(*duals), "outputs", None)
        primals, pushed = [], []
        for out in outputs:
            primal, tangent = unpack_dual(out)
            primals.append(primal)
            tangent = fn.zeros_like(primal) if tangent is None else tangent
            pushed.append(shown(tangent, level, -1, "vmap(jvp, ...): `jvp`"))
    rows = [[part.reshape((*primal._array.shape, *x._array.shape))
             for part, x in zip(fn.split(column, sizes, dim=-1), given, strict=True)]
            for column, primal in zip(pushed, primals, strict=True)]
    return blocks(rows, several_out, several)


def hessian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
            vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode") -> Any:
    """A scalar function's matrix of second derivatives: the Jacobian of its gradient.

    H[i, j] = d^2 f / d x_i d x_j, shaped (*shape of one input, *shape of the other).
    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.hessian.html

    Args:
        func: takes tensors and returns one tensor of one element.
        inputs: a tensor or a tuple of tensors.
        create_graph: let the Hessian be differentiated, also by `inputs`.
        strict: a value or gradient that does not depend on an input is an error, and not zero.
        vectorize: all rows, or columns, at once.
        outer_jacobian_strategy: how the gradient is differentiated: see `jacobian`.

    Returns:
        One block, or a tuple of tuples of them where the inputs are a tuple.

    Raises:
        TypeError: inputs or outputs are no tensors.
        RuntimeError: `func` does not return a scalar; `strict` refuses, or is asked for together with `vectorize` or
            forward mode.
        NotImplementedError: forward mode with `create_graph`, or not vectorized.

    >>> import flambeau as torch
    >>> torch.autograd.functional.hessian(lambda x: (x ** 3).sum(), torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    several, given = as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in _STRATEGIES:
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar(*x: Tensor) -> Tensor:
        several_out, outputs = as_tuple(func(*x), _OUTPUTS, "hessian")
        must_have_graph(outputs, "outputs", strict)
        if several_out:
            raise RuntimeError("The function given to hessian should return a single Tensor")
        if outputs[0]._array.size != 1:
            raise RuntimeError("The Tensor returned by the function given to hessian should contain a single element")
        return fn.squeeze(outputs[0])

    def gradient(*x: Tensor) -> Tensors:
        if outer_jacobian_strategy == "forward-mode":  # or what these dual tensors hold would not enter
            x = tuple(each.requires_grad_() for each in x)
        found: Tensors = jacobian(scalar, x, create_graph=True)
        must_have_graph(found, "jacobian", strict)
        return found

    found = jacobian(gradient, given, create_graph, strict, vectorize, outer_jacobian_strategy)
    return blocks(found, several, several)


__all__ = ["hessian", "jacobian"]
