"""`linear`, with its fast path and the inlined backward rules of `addmm`."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...backends.compiled import sum_rows
from ...backends.compiled.families import matmul as kernels
from ...backends.sparse_array import SparseAccess
from ...engine.execution.accumulate_grad import AccumulateGrad
from ...engine.grad_mode import grad_mode, inference
from ...engine.nodes.node import next_number
from ...engine.nodes.op_node import OpNode
from ...engine.rules.deferred_accumulation import MAX_DEFERRED_ROWS, DeferredOuterProduct, DeferredRowSum
from ...engine.rules.inlined_rules import plan_of
from ...engine.tensor_interface import layer
from ...errstate import quietly, run_quietly
from ...modes import active_transforms, forward_levels, inference_used, result_modes_used, special, transform_stack
from ...ops.declare import REGISTRY
from ..argument_errors.guards import raise_refusal
from ..argument_errors.messages import unfit
from ..argument_errors.out_arguments import check_records_nothing
from ..dispatch.apply import apply
from ..dispatch.graph_recording import as_view, gradient_fix
from ..dispatch.public_functions import public_function
from ..fastpath.known_views import view_of
from ..fastpath.levels import beside_levels
from ..overriding.first_calls import called_again
from ..tensor import INFERENCE, Tensor
from .matmul import (
    F32,
    F64,
    _both_gradients,
    _fast_mm,
    _left_gradient,
    _product,
    _run_t,
    _save_versions,
    _t_plan,
    _transposed,
    _values,
    _write_out,
    edge_of,
    fast_wrap,
    is_fast_mm,
    matmul,
)

__all__ = ["linear"]

ndarray = np.ndarray
new = object.__new__
_dot = np.dot
_large = kernels.MIN_ELEMENTS
_grad_enabled, _inferring = grad_mode.get, inference.get
_addmm = REGISTRY["addmm"]
_general_addmm = public_function(_addmm)


# ----- inlined backward rules ------------------------------------------------------------


def _run_linear(node: Any, g: Any) -> Any:
    """The rule of `addmm` with beta = alpha = 1 and a vector as bias."""
    x, y = _values(node)
    left, right = _both_gradients(g, x, y)
    return sum_rows(g), left, right


def _run_linear_right(node: Any, g: Any) -> Any:
    x, = _values(node)
    return sum_rows(g), None, _product(g.T, x).T


def _run_linear_deferred(node: Any, g: Any) -> Any:
    """`_run_linear` with deferred accumulation, for parameters that several `linear` nodes use."""
    if g.__class__ is not ndarray:
        return _linear_runs[5 if node.saved1 is None else 7](node, g)
    values = _values(node)
    left = None if len(values) == 1 else _left_gradient(g, values[1], node.consts[1])
    return DeferredRowSum([g]), left, DeferredOuterProduct([g], [values[0]], True)


_view = REGISTRY["view"]
_view_plan = plan_of(_view, 1, 1)
_linear_plans = {5: plan_of(_addmm, 5, 3), 7: plan_of(_addmm, 7, 3)}
_linear_runs = {5: _run_linear_right, 7: _run_linear}


_add = np.add


# ----- linear -----------------------------------------------------------------------


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """input @ weightᵀ + bias.

    Args:
        input: (..., in).
        weight: (out, in) or (in).
        bias: (out) or ().

    Raises:
        RuntimeError: the shapes do not match, or the dtypes differ.

    >>> import flambeau as torch
    >>> torch.nn.functional.linear(torch.ones(1, 2), torch.tensor([[1., 2.]]), torch.tensor([3.]))
    tensor([[6.]])
    """
    if out is not None:
        check_records_nothing("linear", (input, weight, bias), (out,))
        return _write_out("linear", linear(input, weight, bias), out)
    try:
        x, w = input._array, weight._array
    except AttributeError:
        result = called_again(linear, (input, weight, bias), {})
        if result is not NotImplemented:
            return result
        raise_refusal(unfit(("linear",), (input, weight, bias), {}))
        raise
    if special[0] and (not isinstance(x, ndarray) or not isinstance(w, ndarray) or (
            bias is not None and not isinstance(bias._array, ndarray))):
        return _linear_of_batches(input, weight, bias)
    try:
        columns = w.T
    except SparseAccess:
        return _linear_of_sparse(input, weight, bias)
    if w.ndim == 2 and is_fast_mm(x, columns):
        if bias is None:
            transposed = _transposed_weight(weight, w)
            return _fast_mm(input, transposed, x, transposed._array)
        try:
            b = bias._array
        except AttributeError:
            raise_refusal(unfit(("linear",), (input, weight, bias), {}))
            raise
        if b.ndim == 1 and b.shape[0] == w.shape[0] and b.dtype is x.dtype:
            mask = (1 if bias._requires_grad else 0) + (2 if input._requires_grad else 0) + (
                4 if weight._requires_grad else 0)
            recording = _grad_enabled()
            if not mask or not recording or mask == 5 or mask == 7:
                return _fast_linear(input, weight, bias, mask if recording else 0, x, w, columns, b)
    rank = x.ndim
    if not rank or not w.ndim:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are {rank}D and {w.ndim}D")
    if bias is not None and w.ndim == 1:
        raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
    if bias is None:
        return matmul(input, _transposed(weight))
    if rank == 2:
        return _general_addmm(bias, input, _transposed(weight))
    if w.ndim == 2 and rank and x.flags.c_contiguous:
        if not special[0] and not result_modes_used[0] and bias._array.ndim == 1 and not ((
                input._requires_grad or weight._requires_grad or bias._requires_grad) and _grad_enabled()):
            array, b = x.reshape(prod(x.shape[:-1]), x.shape[-1]), bias._array
            if b.shape[0] == w.shape[0] and b.dtype is x.dtype and is_fast_mm(array, columns):
                product = _fast_linear(input, weight, bias, 0, array, w, columns, b)
                return view_of(product, product._array.reshape(*x.shape[:-1], w.shape[0]), False)
        rows = _view_rows(input, (prod(x.shape[:-1]), x.shape[-1]))
        if rows._array.dtype is w.dtype and is_fast_mm(rows._array, w.T):
            product = linear(rows, weight, bias)
        else:
            product = _general_addmm(bias, rows, _transposed(weight))
        return _view_rows(product, (*x.shape[:-1], w.shape[0]))
    return layer.functions.add(matmul(input, _transposed(weight)), bias)


def _linear_of_sparse(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`linear` with a sparse weight."""
    columns = weight.t()
    if bias is None:
        return matmul(input, columns)
    if input.ndim == 2:
        return layer.functions.addmm(bias, input, columns)
    product = layer.functions.addmm(bias, input.reshape(-1, input.shape[-1]), columns)
    return product.view(*input.shape[:-1], weight.shape[0])


def _linear_of_batches(input: Any, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`linear` inside `vmap`: with an unbatched weight, the examples are rows of one product."""
    from ..dispatch.batched_tensor import expand_levels, is_batched, make_batched, vmap_levels

    if not is_batched(input, weight, bias):
        return _linear_of_sparse(input, weight, bias)
    if not is_batched(weight, bias) and input._array.ndim and not forward_levels:
        # with forward-mode levels the weight's tangent may have the levels that the weight itself lacks
        return make_batched(linear(input._value, weight, bias), input._levels)
    levels = vmap_levels((input, weight, bias))
    if is_batched(weight) and weight._array.ndim == 2 and 1 <= input._array.ndim <= 2 and len(levels) == 1 and (
            not forward_levels and (bias is None or bias._array.ndim == 1)):
        return make_batched(_linear_by_example(
            expand_levels(input, levels), expand_levels(weight, levels),
            None if bias is None else expand_levels(bias, levels)), levels)
    product = matmul(input, layer.functions.t(weight))
    return product if bias is None else layer.functions.add(product, bias)


def _linear_by_example(x: Tensor, w: Tensor, b: Tensor | None) -> Any:
    """`linear` of a batch of vectors or of matrices, with a weight and a bias for each."""
    fn = layer.functions
    if x._array.ndim == 3:
        product = fn.bmm(x, fn.transpose(w, 1, 2))
        return product if b is None else product + fn.unsqueeze(b, 1)
    product = fn.squeeze(fn.bmm(w, fn.unsqueeze(x, 2)), 2)
    return product if b is None else product + b


def _view_rows(x: Any, size: tuple[int, ...]) -> Any:
    """The fast path of `view` for a contiguous tensor."""
    if special[0] and not beside_levels(x):
        return apply(_view, [x], {"size": size})
    a = x._array
    out = as_view(fast_wrap(a.reshape(size)), x)
    if x._requires_grad and _grad_enabled():
        node = OpNode()
        node.edge0 = edge_of(x)
        node.edge1 = None
        node.n_edges = 1
        node.edge_outputs = (x._output_nr,) if x._output_nr else None
        node.seq = next_number()
        node.plan = _view_plan
        node.run = _view_plan.run
        node.extra = node.outputs = node.fix = node.versions = None
        if a.dtype is not F32 and a.dtype is not F64:
            node.fix = gradient_fix(_view, (x,), out._array)
            node.run = _view_plan.run if node.fix is None else None
        node.saved0 = node.saved1 = None
        node.consts = (a.shape,)
        out._requires_grad = True
        out._node = node
    elif inference_used[0] and _inferring():
        out._inference, out._counter = True, INFERENCE
    return out


def _transposed_weight(weight: Any, w: Any) -> Any:
    """The transpose of a weight for its product's node: with its version counter and a TBackward0 node, but no view."""
    transposed = fast_wrap(w.T)
    if weight._requires_grad and _grad_enabled():
        counter = weight._counter
        if counter is None:
            counter = weight._counter = [0]
        transposed._counter = counter
        node = OpNode()
        node.edge0 = edge_of(weight)
        node.edge1 = None
        node.n_edges = 1
        node.edge_outputs = (weight._output_nr,) if weight._output_nr else None
        node.seq = next_number()
        node.plan = _t_plan
        node.run = _run_t
        node.extra = node.outputs = node.fix = node.versions = None
        node.saved0 = node.saved1 = None
        node.consts = ()
        transposed._requires_grad = True
        transposed._node = node
    else:
        transposed._counter = weight._counter
    return transposed


def _fast_linear(input: Any, weight: Any, bias: Any, mask: int, x: Any, w: Any, columns: Any, b: Any) -> Any:
    """The fast path of `linear` with bias, recorded as `addmm`; `columns` is the transpose of `w`."""
    if x.size + w.size > _large[0]:
        array = kernels.linear(x, columns, b)
    else:
        try:
            array = quietly(_dot, x, columns)
            quietly(_add, array, b, array)
        except RuntimeError:  # the context is entered already
            array = run_quietly(_dot, x, columns)
            run_quietly(_add, array, b, array)
    result = new(Tensor)
    result._array = array
    result._output_nr = 0
    result._grad = result._counter = result._base = result._accumulator = result._node = None
    result._requires_grad = False
    if not mask:
        if result_modes_used[0]:
            if _inferring():
                result._inference, result._counter = True, INFERENCE
            if active_transforms[0]:
                result._transform_depth = len(transform_stack.get())
        return result
    result._requires_grad = True
    result._node = linear_node(input, weight, bias, mask, x, w, b)
    return result


def linear_node(input: Any, weight: Any, bias: Any, mask: int, x: Any, w: Any, b: Any) -> Any:
    """The AddmmBackward0 node of `linear`.

    Args:
        mask: the inputs of `addmm` (bias, input, weight) that require grad, as bits: 5 or 7.
        x: the array of `input`.
        w: the array of `weight`.
        b: the array of `bias`.
    """
    transposed = _transposed_weight(weight, w)
    node = OpNode()
    node.plan = _linear_plans[mask]
    node.run = _linear_runs[mask]
    node.extra = node.outputs = node.fix = node.versions = None
    node.saved0 = input
    node.n_edges = 3
    node.edge0 = first = edge_of(bias)
    node.more_edges = (transposed._node,)
    first_output, output = bias._output_nr, 0
    if mask == 7:
        node.edge1 = edge_of(input)
        node.saved1 = transposed
        node.consts = (b.shape, x.strides, transposed._array.strides, 1, 1)
        output = input._output_nr
    else:
        node.edge1 = node.saved1 = None
        columns = transposed._array
        node.consts = (b.shape, columns.shape, columns.strides, 1, 1)
    node.seq = next_number()  # after the edges: that of a stale view is a new node
    node.edge_outputs = (first_output, output, 0) if first_output or output else None
    if first.__class__ is AccumulateGrad and x.shape[0] <= MAX_DEFERRED_ROWS and x.size + w.size > _large[0] and (
            w.flags.c_contiguous):
        second = transposed._node.edge0
        if second.__class__ is AccumulateGrad:
            if second.visited:
                node.run = _run_linear_deferred
            second.visited = True
    _save_versions(node)
    return node
