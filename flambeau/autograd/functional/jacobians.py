"""`torch.autograd.functional.jacobian` and `hessian`.

Each row takes a backward pass. Vectorized, all rows take one backward pass, or all columns one forward pass, over a
batch of unit vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.dispatch.batched_tensor import vmap_level
from ..._tensor.dispatch.dual_tensors import dual_level, make_dual, unpack_dual
from ...engine.grad_mode import enable_grad
from ...func.batches import expose_dim, hide_dim
from ...func.jacobians import basis
from .arguments import Tensors, as_graph_inputs, as_tuple, detach_results, gradients, unwrap_blocks
from .strictness import BLOCK_MISSING, JACOBIAN_WITHOUT_GRAPH, require_graph

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
        create_graph: record the computation, so that the Jacobian can be differentiated.
        strict: an output that does not depend on an input is an error instead of a block of zeros.
        vectorize: compute all rows (or columns) in one batched pass.
        strategy: "reverse-mode", by rows; or "forward-mode", by columns, which must be vectorized.

    Returns:
        One block; a tuple of blocks where inputs or outputs are a tuple; a tuple (outputs) of tuples (inputs) where
        both are. Forward mode returns lists instead of tuples, as in PyTorch.

    Raises:
        TypeError: an input or output is not a tensor.
        RuntimeError: a `strict` check fails; `strict` with `vectorize` or forward mode.
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
        return _columns_batched(func, inputs, vectorize)
    with enable_grad():
        several, args = as_tuple(inputs, "inputs", "jacobian")
        args = as_graph_inputs(args, create_graph)
        several_out, outputs = as_tuple(func(*args), _OUTPUTS, "jacobian")
        require_graph(outputs, "outputs", strict)
        if not vectorize:
            rows = _rows_one_by_one(outputs, args, create_graph, strict)
        elif strict:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
                "Please either set `strict=False` or `vectorize=False`.")
        else:
            rows = _rows_batched(outputs, args, create_graph)
    return unwrap_blocks(detach_results(rows, create_graph), several_out, several)


def _rows_one_by_one(outputs: Tensors, inputs: Tensors, create_graph: bool, strict: bool) -> tuple[Tensors, ...]:
    """Blocks [output][input]: a backward pass for each element of the outputs."""
    blocks = []
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
        blocks.append(tuple(fn.stack(row).view((*out._array.shape, *x._array.shape))
                           for row, x in zip(rows, inputs, strict=True)))
    return tuple(blocks)


def _rows_batched(outputs: Tensors, inputs: Tensors, create_graph: bool) -> tuple[Tensors, ...]:
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


def _columns_batched(func: Callable[..., Any], inputs: Any, vectorize: bool) -> Any:
    """The Jacobian by one forward pass with a batch of all unit tangents."""
    several, args = as_tuple(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError("Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly "
                                  "implemented for `vectorize=True`.")
    sizes = [x._array.size for x in args]
    with vmap_level(sum(sizes), "error") as level, dual_level():
        units = basis(args, 0, sum(sizes))
        duals = [make_dual(x, hide_dim(unit, 0, level)) for x, unit in zip(args, units, strict=True)]
        several_out, outputs = as_tuple(func(*duals), "outputs", None)
        primals, pushed = [], []
        for out in outputs:
            primal, tangent = unpack_dual(out)
            primals.append(primal)
            tangent = fn.zeros_like(primal) if tangent is None else tangent
            pushed.append(expose_dim(tangent, level, -1, "vmap(jvp, ...): `jvp`"))
    rows = [[part.reshape((*primal._array.shape, *x._array.shape))
             for part, x in zip(fn.split(column, sizes, dim=-1), args, strict=True)]
            for column, primal in zip(pushed, primals, strict=True)]
    return unwrap_blocks(rows, several_out, several)


def hessian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
            vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode") -> Any:
    """A scalar function's Hessian: the Jacobian of its gradient.

    H[i, j] = d^2 f / d x_i d x_j, shaped (*shape of one input, *shape of the other).
    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.hessian.html

    Args:
        func: takes tensors and returns one tensor of one element.
        inputs: a tensor or a tuple of tensors.
        create_graph: record the computation, so that the Hessian can be differentiated.
        strict: a value or gradient that does not depend on an input is an error instead of zero.
        vectorize: compute all rows (or columns) in one batched pass.
        outer_jacobian_strategy: how the gradient is differentiated: see `jacobian`.

    Returns:
        One block, or a tuple of tuples of them where the inputs are a tuple.

    Raises:
        TypeError: an input or output is not a tensor.
        RuntimeError: `func` does not return a scalar; a `strict` check fails; `strict` with `vectorize` or forward
            mode.
        NotImplementedError: forward mode with `create_graph`, or not vectorized.

    >>> import flambeau as torch
    >>> torch.autograd.functional.hessian(lambda x: (x ** 3).sum(), torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    several, args = as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in _STRATEGIES:
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar(*x: Tensor) -> Tensor:
        several_out, outputs = as_tuple(func(*x), _OUTPUTS, "hessian")
        require_graph(outputs, "outputs", strict)
        if several_out:
            raise RuntimeError("The function given to hessian should return a single Tensor")
        if outputs[0]._array.size != 1:
            raise RuntimeError("The Tensor returned by the function given to hessian should contain a single element")
        return fn.squeeze(outputs[0])

    def gradient(*x: Tensor) -> Tensors:
        if outer_jacobian_strategy == "forward-mode":  # the gradient needs a graph for the dual tensors' tangents
            x = tuple(dual.requires_grad_() for dual in x)
        grads: Tensors = jacobian(scalar, x, create_graph=True)
        require_graph(grads, "jacobian", strict)
        return grads

    blocks = jacobian(gradient, args, create_graph, strict, vectorize, outer_jacobian_strategy)
    return unwrap_blocks(blocks, several, several)


__all__ = ["hessian", "jacobian"]
