"""Matrix products by the operands' dimensions: `matmul`, `linear`, and the short way of `mm`.

Which products, views and copies a `matmul` is made of is PyTorch's choice (a large operand is
folded into one matrix where that saves copies), because the graph shows it.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...backends.compiled import row_sum
from ...backends.compiled.families import matmul as kernels
from ...backends.errstate import quietly
from ...engine.execution.accumulate_grad import AccumulateGrad
from ...engine.grad_mode import grad_mode, inference
from ...engine.nodes.node import next_number
from ...engine.nodes.op_node import FREED, OpNode
from ...engine.rules.deferred_accumulation import FEW, DeferredOuterProduct, DeferredRowSum
from ...engine.rules.inlined_rules import plan_of
from ...engine.tensor_interface import layer
from ...modes import special, transforming, transforms
from ...ops.declare import REGISTRY
from ...shapes import broadcast_shapes
from ..dispatch.apply import apply
from ..dispatch.binding import functions_of, write_out
from ..dispatch.gradient_edge import gradient_edge
from ..dispatch.graph_recording import _fix, as_view
from ..shape.reshaping import reshaped
from ..tensor import INFERENCE, Tensor

__all__ = ["linear", "matmul", "mm", "spmm"]

ndarray = np.ndarray
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
new = object.__new__
_dot = np.dot
_large = kernels.LEAST
_grad_enabled, _inferring = grad_mode.get, inference.get
_mm, _t, _addmm = REGISTRY["mm"], REGISTRY["t"], REGISTRY["addmm"]
_general_mm, _general_addmm, _transposed = functions_of(_mm), functions_of(_addmm), functions_of(_t)


# ----- the short ways backward -----------------------------------------------------------


def _values(node: Any) -> Any:
    """The saved inputs' arrays, checked."""
    x, y = node.saved0, node.saved1
    if x is not FREED:
        c, versions = x._counter, node.versions
        if c is None or c[0] == (0 if versions is None else versions[0]):
            if y is None:
                return (x._array,)
            c = y._counter
            if c is None or c[0] == (0 if versions is None else versions[1]):
                return x._array, y._array
    return node.unpack(False)


def _product(x: Any, y: Any) -> Any:
    """x @ y of matrices of one dtype, float32 or float64."""
    return _dot(x, y) if x.size + y.size <= _large[0] else kernels.mm(x, y)


def _by_left(g: Any, y: Any, strides: tuple[int, int]) -> Any:
    """The gradient of x in x @ y; it lies as x does, whose strides these are."""
    s, t = strides
    return _product(y, g.T).T if s < t else _product(g, y.T)


def _by_right(g: Any, x: Any, strides: tuple[int, int]) -> Any:
    """The gradient of y in x @ y."""
    s, t = strides
    return _product(g.T, x).T if s < t else _product(x.T, g)


def _both(g: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """The gradients of x and y in x @ y."""
    if g.size + max(x.size, y.size) > _large[0]:
        return _by_left(g, y, x.strides), _by_right(g, x, y.strides)
    s, t = x.strides
    u, v = y.strides
    return (_dot(y, g.T).T if s < t else _dot(g, y.T)), (_dot(g.T, x).T if u < v else _dot(x.T, g))


def _run_mm(node: Any, g: Any) -> Any:
    x, y = _values(node)
    return _both(g, x, y)


def _run_mm_right(node: Any, g: Any) -> Any:
    x, = _values(node)
    return None, _by_right(g, x, node.consts[0])


def _run_mm_left(node: Any, g: Any) -> Any:
    y, = _values(node)
    return _by_left(g, y, node.consts[0]), None


def _run_t(node: Any, g: Any) -> Any:
    return (g.T,)


def _run_linear(node: Any, g: Any) -> Any:
    """beta = alpha = 1, the bias a vector."""
    x, y = _values(node)
    left, right = _both(g, x, y)
    return row_sum(g), left, right


def _run_linear_right(node: Any, g: Any) -> Any:
    x, = _values(node)
    return row_sum(g), None, _product(g.T, x).T


def _gathering(node: Any, g: Any) -> Any:
    """As `_run_linear`, for parameters that get more gradients of this kind."""
    if g.__class__ is not ndarray:
        return _linear_runs[5 if node.saved1 is None else 7](node, g)
    values = _values(node)
    left = None if len(values) == 1 else _by_left(g, values[1], node.consts[1])
    return DeferredRowSum([g]), left, DeferredOuterProduct([g], [values[0]], True)


_mm_plans: tuple[Any, ...] = (None, plan_of(_mm, 1, 2), plan_of(_mm, 2, 2), plan_of(_mm, 3, 2))
for _plan, _run in zip(_mm_plans[1:], (_run_mm_left, _run_mm_right, _run_mm), strict=True):
    _plan.run = _run
_t_plan = plan_of(_t, 1, 1)
_t_plan.run = _run_t
_view = REGISTRY["view"]
_view_plan = plan_of(_view, 1, 1)
_linear_plans = {5: plan_of(_addmm, 5, 3), 7: plan_of(_addmm, 7, 3)}
_linear_runs = {5: _run_linear_right, 7: _run_linear}


# ----- two matrices ----------------------------------------------------------------------


def edge_of(x: Any) -> Any:
    """The node that a tensor's gradient goes to, or None."""
    node = x._node
    if node is None:
        reference = x._accumulator
        if reference is not None:
            node = reference()
        return gradient_edge(x) if node is None else node
    return node if x._base is None else gradient_edge(x)


def fresh(array: Any) -> Any:
    """A tensor of this array, without a history."""
    result = new(Tensor)
    result._array = array
    result._output_nr = 0
    result._grad = result._counter = result._base = result._accumulator = result._node = None
    result._requires_grad = False
    return result


def plain(x: Any, y: Any) -> bool:
    """Whether two arrays are matrices of one float dtype that fit each other."""
    dt = x.dtype
    return (dt is y.dtype and (dt is F32 or dt is F64) and x.ndim == 2 and y.ndim == 2 and x.shape[1] == y.shape[0]
            and not special[0])


def _quick_mm(input: Any, mat2: Any, x: Any, y: Any) -> Any:
    """`mm` of plain matrices, recorded."""
    result = new(Tensor)
    result._array = _dot(x, y) if x.size + y.size <= _large[0] else kernels.mm(x, y)  # BLAS warns of nothing
    result._output_nr = 0
    result._grad = result._counter = result._base = result._accumulator = result._node = None
    result._requires_grad = False
    mask = (1 if input._requires_grad else 0) + (2 if mat2._requires_grad else 0)
    if not mask or not _grad_enabled():
        if _inferring():
            result._inference, result._counter = True, INFERENCE
        if transforms[0]:
            result._depth = len(transforming.get())
        return result
    node = OpNode()
    node.edge0 = edge_of(input) if mask & 1 else None
    node.edge1 = edge_of(mat2) if mask & 2 else None
    node.n_edges = 2
    if input._output_nr or mat2._output_nr:
        node.edge_outputs = (input._output_nr, mat2._output_nr)
    else:
        node.edge_outputs = None
    node.seq = next_number()
    node.plan = plan = _mm_plans[mask]
    node.run = plan.run
    node.extra = node.outputs = node.fix = node.versions = None
    if mask == 3:
        node.saved0, node.saved1 = input, mat2
        node.consts = (x.strides, y.strides)
    elif mask == 1:
        node.saved0, node.saved1 = mat2, None
        node.consts = (x.strides,)
    else:
        node.saved0, node.saved1 = input, None
        node.consts = (y.strides,)
    _note_versions(node)
    result._requires_grad = True
    result._node = node
    return result


def _note_versions(node: Any) -> None:
    x, y = node.saved0, node.saved1
    c = x._counter
    if y is None:
        if c is not None and c[0]:
            node.versions = (c[0],)
        return
    d = y._counter
    if (c is not None and c[0]) or (d is not None and d[0]):
        node.versions = (0 if c is None else c[0], 0 if d is None else d[0])


def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices, (n, m) by (m, p).

    Raises:
        RuntimeError: the shapes do not fit, or the dtypes differ.

    >>> import flambeau as torch
    >>> torch.mm(torch.ones(2, 3), torch.ones(3, 1))
    tensor([[3.],
            [3.]])
    """
    if out is None:
        try:
            x, y = input._array, mat2._array
        except AttributeError:
            pass
        else:
            if plain(x, y):
                return _quick_mm(input, mat2, x, y)
    return _general_mm(input, mat2, out=out)


# ----- any dimensions --------------------------------------------------------------------


def _operand(x: Any, name: str, position: int) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(f"matmul(): argument '{name}' (position {position}) must be Tensor, not {type(x).__name__}")
    return x


def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The matrix product: of vectors, matrices, or batches of matrices, which broadcast.

    Args:
        input: (..., n, m) or (m).
        other: (..., m, p) or (m).

    Raises:
        RuntimeError: the shapes do not fit, or the dtypes differ.

    >>> import flambeau as torch
    >>> torch.matmul(torch.ones(5, 2, 3), torch.ones(3, 4)).shape
    flambeau.Size([5, 2, 4])
    """
    if out is None:
        try:
            x, y = input._array, other._array
        except AttributeError:
            pass
        else:
            dt = x.dtype
            if (dt is y.dtype and (dt is F32 or dt is F64) and x.ndim == 2 and y.ndim == 2
                    and x.shape[1] == y.shape[0] and not special[0]):  # `_plain`, written out
                return _quick_mm(input, other, x, y)
        return _matmul(_operand(input, "input", 1), _operand(other, "other", 2))
    return _written("matmul", _matmul(input, other), out)


def _matmul(x: Tensor, y: Tensor) -> Tensor:
    d, e = x._array.ndim, y._array.ndim
    fn = layer.functions
    if not d or not e:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {d}D and {e}D")
    if d <= 2 and e <= 2:
        if d == 2:
            return mm(x, y) if e == 2 else fn.mv(x, y)
        if e == 1:
            return fn.dot(x, y)
        row = mm(fn.unsqueeze(x, 0), y)
        return apply(REGISTRY["_unsafe_squeeze"], [row], {"dim": 0})
    if _folds(x, y):
        return _folded(x, y)
    if d == 3 and e == 3 and x._array.shape[0] != y._array.shape[0]:
        # one matrix against many: a fold, with less to keep for the gradient
        if x._array.shape[0] == 1 and x._requires_grad:
            return _matmul(fn.squeeze(x, 0), y)
        if y._array.shape[0] == 1 and y._requires_grad:
            return _matmul(x, fn.squeeze(y, 0))
    return _batched(x, y)


def _folds(x: Tensor, y: Tensor) -> bool:
    """Whether the larger operand becomes one matrix: for a small one that wants a gradient, or for free."""
    d, e = x._array.ndim, y._array.ndim
    large, small = (x, y) if d >= e else (y, x)
    if large._array.ndim < 3 or small._array.ndim > 2:
        return False
    if small._requires_grad:
        return True
    if d == 2:
        return False
    a = large._array
    if not a.size:
        return True
    shape, strides = list(a.shape), list(a.strides)
    if d < e:  # it is turned before it is folded
        shape[-2:], strides[-2:] = shape[:-3:-1], strides[:-3:-1]
    return all(strides[i] == strides[i + 1] * shape[i + 1] for i in range(a.ndim - 2))


def _folded(x: Tensor, y: Tensor) -> Tensor:
    """All leading dimensions of the larger operand as the rows of one matrix."""
    fn = layer.functions
    turned = y._array.ndim > x._array.ndim
    if turned:
        large, small = fn.transpose(y, -2, -1), (_transposed(x) if x._array.ndim == 2 else x)
    else:
        large, small = x, y
    *lead, depth = large._array.shape
    rows = reshaped(large, (prod(lead), depth))
    view = REGISTRY["_unsafe_view"]
    if small._array.ndim == 2:
        out = apply(view, [mm(rows, small)], {"size": (*lead, small._array.shape[1])})
        return fn.transpose(out, -2, -1).contiguous() if turned else out
    return apply(view, [fn.mv(rows, small)], {"size": tuple(lead)})


def _batched(x: Tensor, y: Tensor) -> Tensor:
    """Both operands expanded to the same batch, as one `bmm`."""
    fn = layer.functions
    a, b = x._array.shape, y._array.shape
    row, column = len(a) == 1, len(b) == 1
    n, depth = (1, a[0]) if row else a[-2:]
    if a[:-2] == b[:-2] and len(a) > 2 and not special[0] and not (
            (x._requires_grad or y._requires_grad) and _grad_enabled()):  # nobody asks for the views on the way
        if len(a) == 3:
            return fn.bmm(x, y)
        count = prod(a[:-2])
        found = fn.bmm(fresh(x._array.reshape(count, n, depth)), fresh(y._array.reshape(count, *b[-2:])))
        found._array = found._array.reshape(*a[:-1], b[-1])
        return found
    batch = broadcast_shapes(a[:-2], b[:-2])
    count = prod(batch)
    left = reshaped(fn.expand(x, (*batch, n, depth)), (count, n, depth))
    if column:
        right = fn.unsqueeze(reshaped(fn.expand(y, (*batch, b[0])), (count, b[0])), 2)
    else:
        right = reshaped(fn.expand(y, (*batch, *b[-2:])), (count, *b[-2:]))
    product = fn.bmm(left, right)
    if column:
        product = fn.squeeze(product, -1)
    size = (*batch, *(() if row else (n,)), *(() if column else (b[-1],)))
    return apply(REGISTRY["_unsafe_view"], [product], {"size": size})


# ----- linear maps -----------------------------------------------------------------------


def _written(name: str, found: Tensor, out: Tensor) -> Tensor:
    """A result put into `out`.

    Raises:
        RuntimeError: autograd would have to follow (PyTorch's text), or the dtypes differ.
    """
    if _grad_enabled() and (found._requires_grad or out._requires_grad):
        raise RuntimeError(f"{name}(): functions with out=... arguments don't support automatic differentiation, but "
                           "one of the arguments requires grad.")
    return write_out(_mm, found, out)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """input @ weightᵀ + bias.

    Args:
        input: (..., in).
        weight: (out, in) or (in).
        bias: (out) or ().

    Raises:
        RuntimeError: the shapes do not fit, or the dtypes differ.

    >>> import flambeau as torch
    >>> torch.nn.functional.linear(torch.ones(1, 2), torch.tensor([[1., 2.]]), torch.tensor([3.]))
    tensor([[6.]])
    """
    if out is not None:
        return _written("linear", linear(input, weight, bias), out)
    try:
        x, w = input._array, weight._array
    except AttributeError:
        name, at, value = (("input", 1, input) if not isinstance(input, Tensor) else ("weight", 2, weight))
        raise TypeError(f"linear(): argument '{name}' (position {at}) must be Tensor, not "
                        f"{type(value).__name__}") from None
    if special[0] and (x.__class__ is not ndarray or w.__class__ is not ndarray or (
            bias is not None and bias._array.__class__ is not ndarray)):
        return _linear_of_batches(input, weight, bias)
    if w.ndim == 2 and plain(x, w.T):
        if bias is None:
            turned = _turned(weight, w)
            return _quick_mm(input, turned, x, turned._array)
        b = bias._array
        if b.ndim == 1 and b.shape[0] == w.shape[0] and b.dtype is x.dtype:
            mask = (1 if bias._requires_grad else 0) + (2 if input._requires_grad else 0) + (
                4 if weight._requires_grad else 0)
            recording = _grad_enabled()
            if not mask or not recording or mask == 5 or mask == 7:
                return _quick_linear(input, weight, bias, mask if recording else 0, x, w, b)
    rank = x.ndim
    if bias is None:
        return matmul(input, _transposed(weight))
    if rank == 2:
        return _general_addmm(bias, input, _transposed(weight))
    if w.ndim == 2 and rank and x.flags.c_contiguous:
        rows = _viewed(input, (prod(x.shape[:-1]), x.shape[-1]))
        if rows._array.dtype is w.dtype and plain(rows._array, w.T):
            product = linear(rows, weight, bias)
        else:
            product = _general_addmm(bias, rows, _transposed(weight))
        return _viewed(product, (*x.shape[:-1], w.shape[0]))
    return layer.functions.add(matmul(input, _transposed(weight)), bias)


def _linear_of_batches(input: Any, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`linear` inside `vmap`: unbatched maps take the elements of a batch as rows."""
    from ..dispatch.batched_tensor import batched, is_batched

    if not is_batched(weight, bias) and input._array.ndim:
        return batched(linear(input._value, weight, bias), input._levels)
    product = matmul(input, layer.functions.t(weight))
    return product if bias is None else layer.functions.add(product, bias)


def _viewed(x: Any, size: tuple[int, ...]) -> Any:
    """`view` of a contiguous tensor, recorded."""
    if special[0]:
        return apply(_view, [x], {"size": size})
    a = x._array
    out = as_view(fresh(a.reshape(size)), x)
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
            node.fix = _fix(_view, (x,), out._array)
            node.run = _view_plan.run if node.fix is None else None
        node.saved0 = node.saved1 = None
        node.consts = (a.shape,)
        out._requires_grad = True
        out._node = node
    elif _inferring():
        out._inference, out._counter = True, INFERENCE
    return out


def _turned(weight: Any, w: Any) -> Any:
    """The transpose of a weight for its product's node alone: same version, same history, no view for users."""
    turned = fresh(w.T)
    if weight._requires_grad and _grad_enabled():
        counter = weight._counter
        if counter is None:
            counter = weight._counter = [0]
        turned._counter = counter
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
        turned._requires_grad = True
        turned._node = node
    else:
        turned._counter = weight._counter
    return turned


def _quick_linear(input: Any, weight: Any, bias: Any, mask: int, x: Any, w: Any, b: Any) -> Any:
    """`addmm` of plain operands, recorded."""
    if x.size + w.size > _large[0]:
        array = kernels.linear(x, w.T, b)
    else:
        array = _dot(x, w.T)
        try:
            quietly(np.add, array, b, array)
        except RuntimeError:  # another thread is in there
            array = array + b
    result = new(Tensor)
    result._array = array
    result._output_nr = 0
    result._grad = result._counter = result._base = result._accumulator = result._node = None
    result._requires_grad = False
    if not mask:
        if _inferring():
            result._inference, result._counter = True, INFERENCE
        if transforms[0]:
            result._depth = len(transforming.get())
        return result
    result._requires_grad = True
    result._node = linear_node(input, weight, bias, mask, x, w, b)
    return result


def linear_node(input: Any, weight: Any, bias: Any, mask: int, x: Any, w: Any, b: Any) -> Any:
    """What records `linear` of these tensors, whose arrays are x, w and b; `mask` is 5 or 7, as for `addmm`."""
    turned = _turned(weight, w)
    node = OpNode()
    node.seq = next_number()
    node.plan = _linear_plans[mask]
    node.run = _linear_runs[mask]
    node.extra = node.outputs = node.fix = node.versions = None
    node.saved0 = input
    node.n_edges = 3
    node.edge0 = first = edge_of(bias)
    node.more_edges = (turned._node,)
    first_output, output = bias._output_nr, 0
    if mask == 7:
        node.edge1 = edge_of(input)
        node.saved1 = turned
        node.consts = (b.shape, x.strides, turned._array.strides, 1, 1)
        output = input._output_nr
    else:
        node.edge1 = node.saved1 = None
        node.consts = (b.shape, turned._array.strides, 1, 1)
    node.edge_outputs = (first_output, output, 0) if first_output or output else None
    if first.__class__ is AccumulateGrad and x.shape[0] <= FEW and x.size + w.size > _large[0] and (
            w.flags.c_contiguous):
        second = turned._node.edge0
        if second.__class__ is AccumulateGrad:
            if second.visited:
                node.run = _gathering
            second.visited = True
    _note_versions(node)
    return node


def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """`mm`, by the name that it has for sparse matrices too; there are none here.

    >>> import flambeau as torch
    >>> torch.spmm(torch.ones(1, 2), torch.ones(2, 1))
    tensor([[2.]])
    """
    return mm(input, mat2)


def _dunder(self: Tensor, other: Any) -> Any:
    return matmul(self, other) if isinstance(other, Tensor) else NotImplemented


def _reflected(self: Tensor, other: Any) -> Any:
    return matmul(other, self) if isinstance(other, Tensor) else NotImplemented


METHODS: dict[str, Any] = {"mm": mm, "matmul": matmul, "__matmul__": _dunder, "__rmatmul__": _reflected}
