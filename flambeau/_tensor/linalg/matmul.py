"""`matmul` and `mm`, with the fast path of `mm` and its inlined backward rules.

The operators that `matmul` is composed of are those of PyTorch (a large operand is folded into one matrix where that
saves copies), since they are visible in the graph.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...backends.compiled.families import matmul as kernels
from ...engine.grad_mode import grad_mode, inference
from ...engine.nodes.node import next_number
from ...engine.nodes.op_node import FREED, OpNode
from ...engine.rules.inlined_rules import plan_of
from ...engine.tensor_interface import layer
from ...errstate import quietly, run_quietly
from ...modes import active_transforms, inference_used, result_modes_used, special, transform_stack
from ...ops.declare import REGISTRY
from ...shapes import broadcast_shapes
from ..argument_errors.messages import METHOD, called
from ..argument_errors.out_arguments import check_records_nothing
from ..argument_errors.type_names import not_a_tensor
from ..dispatch.apply import apply
from ..dispatch.array_kernels import kernel_of
from ..dispatch.gradient_edge import gradient_edge
from ..dispatch.out_tensors import write_out
from ..dispatch.public_functions import public_function
from ..fastpath.levels import beside_levels, beside_vmap
from ..fastpath.repeated_calls import repeated
from ..overriding.first_calls import called_again
from ..shape.reshaping import reshaped
from ..tensor import INFERENCE, Tensor, wrap

__all__ = ["matmul", "mm", "spmm"]

ndarray = np.ndarray
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
new = object.__new__
_dot, _empty = np.dot, np.empty
_large = kernels.MIN_ELEMENTS
_grad_enabled, _inferring = grad_mode.get, inference.get
_mm, _t = REGISTRY["mm"], REGISTRY["t"]
_general_mm, _transposed = public_function(_mm), public_function(_t)


# ----- inlined backward rules ------------------------------------------------------------


def _values(node: Any) -> Any:
    """The arrays of the saved inputs, after a check of their versions."""
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
    """x @ y for matrices of one dtype, float32 or float64."""
    return _dot(x, y) if x.size + y.size <= _large[0] else kernels.mm(x, y)


def _left_gradient(g: Any, y: Any, strides: tuple[int, int]) -> Any:
    """The gradient of x in x @ y, in the memory order of x, which has these strides."""
    s, t = strides
    return _product(y, g.T).T if s < t else _product(g, y.T)


def _right_gradient(g: Any, x: Any, strides: tuple[int, int]) -> Any:
    """The gradient of y in x @ y, in the memory order of y, which has these strides."""
    s, t = strides
    return _product(g.T, x).T if s < t else _product(x.T, g)


def _both_gradients(g: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """The gradients of x and y in x @ y."""
    if g.size + max(x.size, y.size) > _large[0]:
        return _left_gradient(g, y, x.strides), _right_gradient(g, x, y.strides)
    s, t = x.strides
    u, v = y.strides
    return (_dot(y, g.T).T if s < t else _dot(g, y.T)), (_dot(g.T, x).T if u < v else _dot(x.T, g))


def _run_mm(node: Any, g: Any) -> Any:
    x, y = _values(node)
    return _both_gradients(g, x, y)


def _run_mm_right(node: Any, g: Any) -> Any:
    x, = _values(node)
    return None, _right_gradient(g, x, node.consts[1])


def _run_mm_left(node: Any, g: Any) -> Any:
    y, = _values(node)
    return _left_gradient(g, y, node.consts[1]), None


def _run_t(node: Any, g: Any) -> Any:
    return (g.T,)


_mm_plans: tuple[Any, ...] = (None, plan_of(_mm, 1, 2), plan_of(_mm, 2, 2), plan_of(_mm, 3, 2))
for _plan, _run in zip(_mm_plans[1:], (_run_mm_left, _run_mm_right, _run_mm), strict=True):
    _plan.run = _run
_t_plan = plan_of(_t, 1, 1)
_t_plan.run = _run_t


_dot_kernel, _mv_kernel, _bmm_kernel = (kernel_of(REGISTRY[name]) for name in ("dot", "mv", "bmm"))


def _kernel_for(x: Any, y: Any) -> Any:
    """The kernel of a product that is one operator, with a vector or of two batches; None where it is composed."""
    if x.__class__ is not ndarray or y.__class__ is not ndarray:
        return None
    d, e = x.ndim, y.ndim
    if e == 1:
        if 0 < d < 3 and x.shape[-1] == y.shape[0]:
            return _dot_kernel if d == 1 else _mv_kernel
    elif d == 3 and e == 3 and x.shape[0] == y.shape[0] and x.shape[2] == y.shape[1]:
        return _bmm_kernel
    return None


# ----- mm --------------------------------------------------------------------------------


def edge_of(x: Any) -> Any:
    """`gradient_edge`, inlined for the common cases."""
    node = x._node
    if node is None:
        reference = x._accumulator
        if reference is not None:
            node = reference()
        return gradient_edge(x) if node is None else node
    return node if x._base is None else gradient_edge(x)


def fast_wrap(array: Any) -> Any:
    """`wrap` without the checks for transforms and size."""
    result = new(Tensor)
    result._array = array
    result._output_nr = 0
    result._grad = result._counter = result._base = result._accumulator = result._node = None
    result._requires_grad = False
    return result


def is_fast_mm(x: Any, y: Any) -> bool:
    """Whether the fast path applies: float32 or float64 matrices of matching shapes, outside modes and batches."""
    dt = x.dtype
    return (dt is y.dtype and (dt is F32 or dt is F64) and x.ndim == 2 and y.ndim == 2 and x.shape[1] == y.shape[0]
            and (not special[0] or beside_vmap(x, y)))


def _fast_mm(input: Any, mat2: Any, x: Any, y: Any) -> Any:
    """The fast path of `mm`."""
    result = new(Tensor)
    if x.size + y.size <= _large[0]:
        try:
            result._array = quietly(_dot, x, y)
        except RuntimeError:  # the context is entered already
            result._array = run_quietly(_dot, x, y)
    else:
        result._array = kernels.mm(x, y)
    result._output_nr = 0
    result._grad = result._counter = result._base = result._accumulator = result._node = None
    result._requires_grad = False
    mask = (1 if input._requires_grad else 0) + (2 if mat2._requires_grad else 0)
    if not mask or not _grad_enabled():
        if result_modes_used[0]:
            if _inferring():
                result._inference, result._counter = True, INFERENCE
            if active_transforms[0]:
                result._transform_depth = len(transform_stack.get())
        return result
    node = OpNode()
    node.edge0 = edge_of(input) if mask & 1 else None
    node.edge1 = edge_of(mat2) if mask & 2 else None
    if mask == 3 and (node.edge0 is None or node.edge1 is None):  # a view made in inference mode has no history
        mask = 1 if node.edge1 is None else 2
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
        node.consts = (x.shape, x.strides)
    else:
        node.saved0, node.saved1 = input, None
        node.consts = (y.shape, y.strides)
    _save_versions(node)
    result._requires_grad = True
    result._node = node
    return result


def _save_versions(node: Any) -> None:
    x, y = node.saved0, node.saved1
    c = x._counter
    if y is None:
        if c is not None and c[0]:
            node.versions = (c[0],)
        return
    d = y._counter
    if (c is not None and c[0]) or (d is not None and d[0]):
        node.versions = (0 if c is None else c[0], d[0] if d is not None and d[0] else 0)


def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices, (n, m) by (m, p).

    Raises:
        RuntimeError: the shapes do not match, or the dtypes differ.

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
            if is_fast_mm(x, y):
                return _fast_mm(input, mat2, x, y)
    return _general_mm(input, mat2, out=out)


# ----- matmul ----------------------------------------------------------------------------


def _operand(x: Any, name: str, position: int) -> Tensor:
    if not isinstance(x, Tensor):
        if called(("matmul",))[0] == METHOD:
            position -= 1
        raise not_a_tensor("matmul", x, name, position)
    return x


def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The matrix product: of vectors, matrices, or batches of matrices, which broadcast.

    Args:
        input: (..., n, m) or (m).
        other: (..., m, p) or (m).

    Raises:
        RuntimeError: the shapes do not match, or the dtypes differ.

    >>> import flambeau as torch
    >>> torch.matmul(torch.ones(5, 2, 3), torch.ones(3, 4)).shape
    flambeau.Size([5, 2, 4])
    """
    if out is None:
        try:
            x, y = input._array, other._array
        except AttributeError:
            result = called_again(matmul, (input, other), {})
            if result is not NotImplemented:
                return result
        else:
            dt = x.dtype
            if (dt is y.dtype and (dt is F32 or dt is F64) and x.ndim == 2 and y.ndim == 2
                    and x.shape[1] == y.shape[0] and (not special[0] or beside_vmap(x, y))):  # `is_fast_mm`, inlined
                return _fast_mm(input, other, x, y)
            if dt is y.dtype and (dt is F32 or dt is F64) and (not special[0] or beside_vmap(x, y)):
                if y.ndim == 1 and not result_modes_used[0] and x.size + y.size <= 4 * _large[0] and not (
                        (input._requires_grad or other._requires_grad) and _grad_enabled()) and (
                        0 < x.ndim < 3 and x.shape[-1] == y.shape[0] and x.__class__ is y.__class__ is ndarray):
                    r = _empty(x.shape[:-1], dt)
                    try:
                        quietly(_dot, x, y, r)  # what the kernel computes
                    except RuntimeError:
                        run_quietly(_dot, x, y, r)
                    return fast_wrap(r)
                kernel = _kernel_for(x, y)
                if kernel is not None and not (inference_used[0] and _inferring()) and not (
                        (input._requires_grad or other._requires_grad) and _grad_enabled()):
                    try:
                        r = quietly(kernel, x, y)
                    except (RuntimeError, ValueError):  # the context is another thread's
                        pass
                    else:
                        return wrap(r if r.__class__ is ndarray else np.asarray(r))
                if (x.ndim > 2 or y.ndim > 2) and (input._requires_grad or other._requires_grad):
                    return _repeated_matmul(input, other)
        return _matmul(_operand(input, "input", 1), _operand(other, "other", 2))
    left, right = _operand(input, "input", 1), _operand(other, "other", 2)
    if left._array.ndim and right._array.ndim:
        check_records_nothing("matmul", (left, right), (out,))
    return _write_out("matmul", _matmul(left, right), out)


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
    if _should_fold(x, y):
        return _fold(x, y)
    if d == 3 and e == 3 and x._array.shape[0] != y._array.shape[0]:
        # one matrix times a batch: folding saves less for the gradient
        if x._array.shape[0] == 1 and x._requires_grad:
            return _matmul(fn.squeeze(x, 0), y)
        if y._array.shape[0] == 1 and y._requires_grad:
            return _matmul(x, fn.squeeze(y, 0))
    return _batched(x, y)


_repeated_matmul = repeated(_matmul)


def _should_fold(x: Tensor, y: Tensor) -> bool:
    """Whether to fold the larger operand into one matrix (PyTorch's `should_fold`): if it needs no copy, or if the
    smaller one requires grad."""
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
    if d < e:  # it is transposed before it is folded
        shape[-2:], strides[-2:] = shape[:-3:-1], strides[:-3:-1]
    return all(strides[i] == strides[i + 1] * shape[i + 1] for i in range(a.ndim - 2))


def _fold(x: Tensor, y: Tensor) -> Tensor:
    """The product with the leading dimensions of the larger operand folded into the rows of one matrix."""
    fn = layer.functions
    transposed = y._array.ndim > x._array.ndim
    if transposed:
        large, small = fn.transpose(y, -2, -1), (_transposed(x) if x._array.ndim == 2 else x)
    else:
        large, small = x, y
    *lead, depth = large._array.shape
    rows = reshaped(large, (prod(lead), depth))
    view = REGISTRY["_unsafe_view"]
    if small._array.ndim == 2:
        out = apply(view, [mm(rows, small)], {"size": (*lead, small._array.shape[1])})
        return fn.transpose(out, -2, -1).contiguous() if transposed else out
    return apply(view, [fn.mv(rows, small)], {"size": tuple(lead)})


def _batched(x: Tensor, y: Tensor) -> Tensor:
    """The product as one `bmm`, both operands expanded to the same batch."""
    fn = layer.functions
    a, b = x._array.shape, y._array.shape
    row, column = len(a) == 1, len(b) == 1
    n, depth = (1, a[0]) if row else a[-2:]
    if a[:-2] == b[:-2] and len(a) > 2 and (not special[0] or beside_levels(x, y)) and not (
            (x._requires_grad or y._requires_grad) and _grad_enabled()):  # no views need to be recorded
        if len(a) == 3:
            return fn.bmm(x, y)
        count = prod(a[:-2])
        result = fn.bmm(fast_wrap(x._array.reshape(count, n, depth)), fast_wrap(y._array.reshape(count, *b[-2:])))
        result._array = result._array.reshape(*a[:-1], b[-1])
        return result
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


def _write_out(name: str, result: Tensor, out: Tensor) -> Tensor:
    """Write a result into `out`.

    Raises:
        RuntimeError: a tensor requires grad, or the dtypes differ.
    """
    check_records_nothing(name, (result,), (out,))
    return write_out(_mm, result, out)


def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """`mm`; sparse matrices are not supported.

    >>> import flambeau as torch
    >>> torch.spmm(torch.ones(1, 2), torch.ones(2, 1))
    tensor([[2.]])
    """
    return mm(input, mat2)


def _matmul_operator(self: Tensor, other: Any) -> Any:
    """`self @ other`."""
    return matmul(self, other) if isinstance(other, Tensor) else NotImplemented


def _rmatmul_operator(self: Tensor, other: Any) -> Any:
    """`other @ self`."""
    return matmul(other, self) if isinstance(other, Tensor) else NotImplemented


METHODS: dict[str, Any] = {"mm": mm, "matmul": matmul, "__matmul__": _matmul_operator, "__rmatmul__": _rmatmul_operator}
