"""Shape inference: shapes, strides and dtypes of an operator's results, without its kernel running on the elements.

An elementwise operator broadcasts; its kernel runs on one element, for the dtype. Reductions and operators that keep
the shape have a rule here, and their kernel runs on one element too. All others are traced over IR values, which have
a shape and a dtype (`ir.lowering`). A view needs no rule: its kernel computes addresses only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy as shallow_copy
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ... import dtypes
from ...backends.numpy.joining import check_cat, check_stack
from ...engine.grad_mode import no_grad
from ...errstate import IGNORE, reset_state, set_state
from ...ir.graph.value import Graph, Unsupported
from ...ir.lowering.namespace import lower_operator
from ...kernels.memory_format import elementwise_strides
from ...ops.declare import ELEMENTWISE, LINEAR, Op
from ...shapes import broadcast_shapes, wrap_dim, wrap_dims
from ..dispatch.array_kernels import kernel_of
from ..dispatch.promotion import promoted_operands, round_params
from ..meta import meta_array
from ..tensor import Tensor, wrap

Shape = tuple[int, ...]


class Metadata(NamedTuple):
    """What is known of a result: strides are in elements, None stands for row-major."""

    shape: Shape
    dtype: np.dtype
    strides: Shape | None = None


def infer(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> list[Metadata] | None:
    """The metadata of an operator's results; None where no rule tells it.

    Args:
        inputs: tensors, of which only the metadata is read, scalars and None.

    Raises:
        RuntimeError, IndexError, NotImplementedError: as the operator does for these shapes and dtypes.
    """
    if op.check is not None:
        op.check(*inputs)
    name = op.forward.__name__
    joined = _JOINING.get(name)
    if joined is not None:
        joined([x._array for x in inputs if isinstance(x, Tensor)], **params)
    rule = RULES.get(name)
    fill = 1 if op.kind == ELEMENTWISE else 0
    units = [_unit(x, fill) if isinstance(x, Tensor) else x for x in inputs]
    with no_grad():
        values, narrow = promoted_operands(_unchecked(op), units, params)
    if op.kind == ELEMENTWISE:
        return _elementwise(inputs, _result_types(op, values, params, narrow))
    if rule is None:
        found = _lowered(op, inputs, values, params, narrow)
    else:
        shapes = rule(*[tuple(x._array.shape) if isinstance(x, Tensor) else x for x in inputs], **params)
        if name in _CHOOSING:
            params = {**params, "k": 1}
        if name in _OF_FIRST_DTYPE:
            first = next(i for i, x in enumerate(inputs) if isinstance(x, Tensor))
            same = inputs[first]._array.dtype if op.promote == "none" else values[first].dtype
            types = [_rounded(same, narrow)] * len(shapes)
        else:
            types = _result_types(op, values, params, narrow)
        # a rule may return an input's shape, and that input may be a number
        found = [Metadata(() if isinstance(shape, (int, float)) else tuple(shape), dtype)
                 for shape, dtype in zip(shapes, types, strict=True)]
    layout = LAYOUTS.get(name)
    if found is None or layout is None:
        return found
    arrays = [x._array for x in inputs if isinstance(x, Tensor)]
    return [each._replace(strides=layout(each, arrays, params)) for each in found]


@cache
def _unchecked(op: Op) -> Op:
    """The operator without the check of its inputs' shapes."""
    if op.check is None:
        return op
    result = shallow_copy(op)
    result.check = None
    return result


def _unit(x: Tensor, fill: int) -> Tensor:
    """A tensor of one element with as many dimensions: a one, or `fill` for integers."""
    a = x._array
    return wrap(np.full((1,) * a.ndim, fill, a.dtype) if a.dtype.kind in "iu" else
                np.ones((1,) * a.ndim, a.dtype))


def _result_types(op: Op, values: list[Any], params: dict[str, Any], narrow: np.dtype | None) -> list[np.dtype]:
    """The dtypes of an operator's results, found by its kernel on tensors of one element."""
    token = set_state(IGNORE)
    try:
        result = kernel_of(op)(*values, **(params if narrow is None else round_params(op, params, narrow)))
    finally:
        reset_state(token)
    outs = result if op.n_outputs != 1 else (result,)
    return [_rounded(np.asarray(out).dtype, narrow) for out in outs]


def _rounded(dtype: np.dtype, narrow: np.dtype | None) -> np.dtype:
    return dtype if narrow is None else dtypes.rounded_type(dtype, narrow)


def _elementwise(inputs: Sequence[Any], types: list[np.dtype]) -> list[Metadata]:
    arrays = [x._array for x in inputs if isinstance(x, Tensor)]
    shape: Shape = arrays[0].shape
    for a in arrays[1:]:
        if a.shape != shape:
            shape = broadcast_shapes(shape, a.shape)
    strides = elementwise_strides(shape, arrays)
    return [Metadata(shape, dtype, strides) for dtype in types]


_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_COMPLEX128 = np.dtype(np.complex128)


def _lowered(op: Op, inputs: Sequence[Any], values: list[Any], params: dict[str, Any],
             narrow: np.dtype | None) -> list[Metadata] | None:
    """The metadata of the IR values that an operator is lowered to.

    The graph computes few operators of integers, of complex numbers and of narrow floats. Where the results have the
    dtype of the inputs, float32 or float64 stands for it.
    """
    graph = Graph()
    graph.counts_at_runtime = True
    dtype = next((v.dtype for v in values if isinstance(v, np.ndarray)), _FLOAT32)
    substitute = dtype
    if dtype.kind != "f" or dtype.itemsize < 4:
        if op.kind == LINEAR or op.forward.__name__ in _KEEPING_DTYPE:
            substitute = _FLOAT64 if dtype == _COMPLEX128 else _FLOAT32
        elif dtype.kind == "c":
            return None
    operands = [graph.input(i, tuple(x._array.shape), substitute if v.dtype == dtype else v.dtype)
                if isinstance(x, Tensor) else v for i, (x, v) in enumerate(zip(inputs, values, strict=True))]
    lists = {name: list(value) for name, value in params.items() if value.__class__ is list}
    arrays = {name: graph.input(len(inputs) + i, value.shape, substitute if value.dtype == dtype else value.dtype)
              for i, (name, value) in enumerate(params.items())  # whose elements the host cannot read
              if getattr(value, "torch_device", None) is not None}
    try:
        outs = lower_operator(graph, op, operands, {**params, **lists, **arrays})
    except Unsupported:
        return None
    for name, extended in lists.items():  # `saved`: what the kernel keeps for the backward pass
        params[name].extend(meta_array(tuple(v.shape), v.dtype) for v in extended[len(params[name]):])
    return [Metadata(tuple(v.shape), _rounded(dtype if v.dtype == substitute else v.dtype, narrow)) for v in outs]


#: operators, not linear, whose results have the dtype of the inputs
_KEEPING_DTYPE = frozenset(("convolution", "_max_pool2d", "_max_pool3d", "_adaptive_max_pool2d",
                            "_adaptive_max_pool3d"))
#: operators with a rule whose results have the promoted dtype of the inputs
_OF_FIRST_DTYPE = frozenset(("mm", "bmm", "mv", "addmm", "addmv", "baddbmm", "addbmm", "addr", "clone", "flip", "roll",
                             "rot90", "tril", "triu", "fill_scalar", "fill_tensor", "scatter", "scatter_scalar",
                             "scatter_add", "scatter_reduce", "index_copy", "index_add", "index_fill_scalar",
                             "index_fill_tensor", "index_reduce", "masked_fill", "masked_fill_scalar", "put",
                             "index_put", "select_scatter", "slice_scatter", "diagonal_scatter", "masked_scatter",
                             "as_strided_scatter", "linalg_matrix_exp", "linalg_householder_product",
                             "cholesky_inverse", "cholesky_solve", "linalg_lu_solve", "linalg_ldl_solve"))
#: operators of which `k` elements of a dimension are chosen
_CHOOSING = frozenset(("topk", "kthvalue"))


# ----- rules: functions of the inputs' shapes and the parameters that return the results' shapes -----

def _same(count: int) -> Callable[..., list[Shape]]:
    return lambda input, *others, **params: [input] * count


def reduced(shape: Shape, dim: Any, keepdim: bool) -> Shape:
    """A shape without the dimensions that are reduced, or with size 1 for each."""
    dims = wrap_dims(dim, len(shape)) if dim is not None and dim != () and dim != [] else range(len(shape))
    if keepdim:
        return tuple(1 if d in dims else n for d, n in enumerate(shape))
    return tuple(n for d, n in enumerate(shape) if d not in dims)


def _reduction(count: int) -> Callable[..., list[Shape]]:
    return lambda input, *others, dim=None, keepdim=False, **params: [reduced(input, dim, keepdim)] * count


def _full(count: int) -> Callable[..., list[Shape]]:
    return lambda *inputs, **params: [()] * count


def _replaced(shape: Shape, dim: int, size: int) -> Shape:
    dim = wrap_dim(dim, len(shape))
    return tuple(size if d == dim else n for d, n in enumerate(shape))


def _topk(input: Shape, *, k: int, dim: int = -1, **params: Any) -> list[Shape]:
    if k < 0 or (input and k > input[dim]) or (k > 1 and not input):
        raise RuntimeError("selected index k out of range")
    return [_replaced(input, dim, k) if input else ()] * 2


def _kthvalue(input: Shape, *, k: int, dim: int = -1, keepdim: bool = False) -> list[Shape]:
    if k < 1 or k > (input[dim] if input else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {wrap_dim(dim, len(input))}")
    return [reduced(input, dim, keepdim)] * 2


def _cdist(x1: Shape, x2: Shape, **params: Any) -> list[Shape]:
    return [(*broadcast_shapes(x1[:-2], x2[:-2]), x1[-2], x2[-2])]


def _index_select(input: Shape, index: Shape, *, dim: int) -> list[Shape]:
    return [_replaced(input, dim, index[0] if index else 1) if input else ()]


def _indexed_like(input: Shape, index: Shape, *others: Any, **params: Any) -> list[Shape]:
    return [index]


def _eigenvalues(A: Shape, **params: Any) -> list[Shape]:
    return [A[:-1], A]


def _batch_and_matrix(A: Shape, *others: Any, **params: Any) -> list[Shape]:
    return [A, A[:-2]]


def _determinant(A: Shape, **params: Any) -> list[Shape]:
    return [A[:-2]]


def _svd(A: Shape, *, full_matrices: bool = True) -> list[Shape]:
    m, n = A[-2:]
    k = min(m, n)
    return [(*A[:-1], m if full_matrices else k), (*A[:-2], k), (*A[:-2], n if full_matrices else k, n)]


def _lu_factor(A: Shape, **params: Any) -> list[Shape]:
    return [A, (*A[:-2], min(A[-2:])), A[:-2]]


def _solution(LU: Shape, pivots: Shape, B: Shape, **params: Any) -> list[Shape]:
    return [(*broadcast_shapes(LU[:-2], B[:-2]), *B[-2:])]


def _real_fourier(input: Shape, *, dim: Sequence[int], onesided: bool, **params: Any) -> list[Shape]:
    return [_replaced(input, dim[-1], input[dim[-1]] // 2 + 1) if onesided else input]


def _half_spectrum(input: Shape, *, dim: Sequence[int], **params: Any) -> list[Shape]:
    return _real_fourier(input, dim=dim, onesided=True)


def _inverse_real_fourier(input: Shape, *, dim: Sequence[int], last_dim_size: int, **params: Any) -> list[Shape]:
    return [_replaced(input, dim[-1], last_dim_size)]


def _masked(input: Shape, mask: Shape, *others: Any, **params: Any) -> list[Shape]:
    return [broadcast_shapes(input, mask)]


def _mm(input: Shape, mat2: Shape) -> list[Shape]:
    return [(input[0], mat2[1])]


def _bmm(input: Shape, mat2: Shape) -> list[Shape]:
    return [(*input[:2], mat2[2])]


def _mv(input: Shape, vec: Shape) -> list[Shape]:
    return [input[:1]]


def _addmm(input: Shape, mat1: Shape, mat2: Shape, **params: Any) -> list[Shape]:
    return [(*mat1[:-1], mat2[-1])]


def _addmv(input: Shape, mat: Shape, vec: Shape, **params: Any) -> list[Shape]:
    return [mat[:1]]


def _qr(A: Shape, *, mode: str = "reduced") -> list[Shape]:
    m, n = A[-2:]
    k = m if mode == "complete" else min(m, n)
    return [(0,) if mode == "r" else (*A[:-1], k), (*A[:-2], min(m, n) if mode == "r" else k, n)]


def _rot90(input: Shape, *, k: int = 1, dims: Sequence[int] = (0, 1)) -> list[Shape]:
    shape = list(input)
    if k % 2:
        a, b = (wrap_dim(d, len(input)) for d in dims)
        shape[a], shape[b] = shape[b], shape[a]
    return [tuple(shape)]


def _addr(input: Shape, vec1: Shape, vec2: Shape, **params: Any) -> list[Shape]:
    return [(vec1[0], vec2[0])]


def _addbmm(input: Shape, batch1: Shape, batch2: Shape, **params: Any) -> list[Shape]:
    return [(batch1[1], batch2[2])]


#: checks of shapes that lowering leaves to the kernels
_JOINING: dict[str, Callable[..., Any]] = {"cat": check_cat, "stack": check_stack}

#: name of an operator -> its rule
RULES: dict[str, Callable[..., list[Shape]]] = {
    **dict.fromkeys(("softmax", "log_softmax", "_safe_softmax", "cumsum", "cumprod", "logcumsumexp", "clone", "flip",
                     "roll", "tril", "triu", "conj", "argsort", "renorm", "fill_scalar", "fill_tensor", "put",
                     "scatter_add", "scatter", "scatter_scalar", "scatter_reduce", "index_add", "index_copy",
                     "index_fill_scalar", "index_fill_tensor", "index_reduce", "linalg_matrix_exp", "_to_copy", "copy",
                     "_fft_c2c", "linalg_householder_product", "index_put", "masked_scatter", "select_scatter",
                     "slice_scatter", "diagonal_scatter", "as_strided_scatter", "cholesky_inverse"), _same(1)),
    **dict.fromkeys(("linalg_lu_solve", "linalg_ldl_solve"), _solution), "cholesky_solve": _same(1),
    **dict.fromkeys(("masked_fill", "masked_fill_scalar"), _masked),
    **dict.fromkeys(("sort", "sort_stable", "cummax", "cummin"), _same(2)),
    **dict.fromkeys(("sum", "nansum", "mean", "prod", "all", "any", "count_nonzero", "logsumexp", "amax", "amin",
                     "argmax", "argmin", "var", "std", "linalg_vector_norm"), _reduction(1)),
    **dict.fromkeys(("aminmax", "var_mean", "std_mean", "max_dim", "min_dim", "median_dim", "nanmedian_dim",
                     "mode"), _reduction(2)),
    **dict.fromkeys(("sum_all", "mean_all", "prod_all", "max_all", "min_all", "median_all", "nanmedian_all",
                     "dist", "dot", "vdot", "trace"), _full(1)),
    "topk": _topk, "kthvalue": _kthvalue, "_cdist_forward": _cdist, "_euclidean_dist": _cdist,
    "isin": _same(1), "index_select": _index_select, "gather": _indexed_like, "take": _indexed_like,
    "mm": _mm, "bmm": _bmm, "mv": _mv, "addmm": _addmm, "baddbmm": _addmm, "addmv": _addmv, "rot90": _rot90,
    "linalg_qr": _qr, "linalg_eigh": _eigenvalues, "linalg_eig": _eigenvalues, "linalg_cholesky_ex": _batch_and_matrix,
    "linalg_inv_ex": _batch_and_matrix, "linalg_det": _determinant, "linalg_svd": _svd,
    "linalg_lu_factor_ex": _lu_factor, "_fft_r2c": _real_fourier, "_fft_c2r": _inverse_real_fourier,
    "_fft_r2c_adjoint": _inverse_real_fourier, "_fft_c2r_adjoint": _half_spectrum,
    "addr": _addr, "addbmm": _addbmm,
}


# ----- layouts: the strides of a result that is not row-major -----

def _broadcast_layout(out: Metadata, arrays: Sequence[np.ndarray], params: dict[str, Any]) -> Shape | None:
    """The dimensions in the order that they have in the inputs' memory."""
    return elementwise_strides(out.shape, arrays) if all(a.ndim <= len(out.shape) for a in arrays) else None


def _input_layout(out: Metadata, arrays: Sequence[np.ndarray], params: dict[str, Any]) -> Shape | None:
    """The dimensions in the order that they have in the first input's memory."""
    return elementwise_strides(out.shape, arrays[:1]) if arrays[0].ndim == len(out.shape) else None


def _rotated_layout(out: Metadata, arrays: Sequence[np.ndarray], params: dict[str, Any]) -> Shape | None:
    """The dimensions in the order that they have in the rotated input's memory."""
    a = arrays[0]
    return elementwise_strides(out.shape, [a.swapaxes(*params.get("dims", (0, 1))) if params.get("k", 1) % 2 else a])


def _solution_layout(out: Metadata, arrays: Sequence[np.ndarray], params: dict[str, Any]) -> Shape | None:
    """Column-major, or row-major where the system is solved from the right."""
    n = len(out.shape)
    return _ordered(out.shape, (n - 2, n - 1, *range(n - 3, -1, -1))) if params.get("left", True) else None


def _requested_layout(out: Metadata, arrays: Sequence[np.ndarray], params: dict[str, Any]) -> Shape | None:
    """The memory format that the call requests."""
    requested = params.get("memory_format")
    if requested is None or requested.name == "preserve_format":
        return _input_layout(out, arrays, params)
    return _ordered(out.shape, (1, *range(len(out.shape) - 1, 1, -1), 0)) if (
        requested.name.startswith("channels_last")) else None


def _channels_layout(out: Metadata, arrays: Sequence[np.ndarray], params: dict[str, Any]) -> Shape | None:
    """The channels innermost, where they are in the input."""
    a = arrays[0]
    inner = tuple(n * a.itemsize for n in _ordered(a.shape, (1, *range(a.ndim - 1, 1, -1), 0))) if a.ndim > 2 else ()
    last = a.ndim > 3 and a.strides == inner and not a.flags.c_contiguous
    return _ordered(out.shape, (1, *range(a.ndim - 1, 1, -1), 0)) if last and len(out.shape) == a.ndim else None


def _column_major(out: Metadata, arrays: Sequence[np.ndarray], params: dict[str, Any]) -> Shape | None:
    """The matrices column by column, as LAPACK returns them."""
    n = len(out.shape)
    return _ordered(out.shape, (n - 2, n - 1, *range(n - 3, -1, -1))) if n > 1 and n == arrays[0].ndim else None


def _fourier_layout(out: Metadata, arrays: Sequence[np.ndarray], params: dict[str, Any]) -> Shape | None:
    """The other dimensions by their strides in the input, then the transformed ones, that of real signals last."""
    strides = [abs(stride) for stride in arrays[0].strides]
    dim = list(params["dim"])
    last = [] if "forward" in params else [dim.pop()]
    others = [d for d in range(len(strides)) if d not in params["dim"]]
    order = [*sorted(others, key=lambda d: -strides[d]), *sorted(dim, key=lambda d: -strides[d]), *last]
    return _ordered(out.shape, order[::-1])


def _ordered(shape: Shape, order: Sequence[int]) -> Shape:
    """The dense strides of dimensions in an order, innermost first."""
    strides, step = [0] * len(shape), 1
    for d in order:
        strides[d] = step
        step *= max(shape[d], 1)
    return tuple(strides)


#: name of an operator -> the function of a result, the inputs and the parameters that gives its strides
LAYOUTS: dict[str, Callable[..., Shape | None]] = {
    **dict.fromkeys(("clone", "_to_copy", "copy"), _requested_layout),
    **dict.fromkeys(("conj", "fill_scalar", "fill_tensor", "flip", "renorm", "sort", "sort_stable",
                     "argsort", "_batch_norm", "glu", "select_scatter", "slice_scatter", "_flash_attention"),
                    _input_layout),
    **dict.fromkeys(("_fft_c2c", "_fft_r2c", "_fft_c2r", "_fft_r2c_adjoint", "_fft_c2r_adjoint"), _fourier_layout),
    **dict.fromkeys(("mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "soft_margin_loss",
                     "binary_cross_entropy_with_logits"), _broadcast_layout),
    **dict.fromkeys(("_max_pool2d", "_max_pool3d", "_avg_pool2d", "_avg_pool3d", "_adaptive_avg_pool2d",
                     "_adaptive_avg_pool3d", "_adaptive_max_pool2d", "_adaptive_max_pool3d", "convolution"),
                    _channels_layout),
    **dict.fromkeys(("linalg_cholesky_ex", "linalg_eigh", "linalg_eig", "linalg_svd", "linalg_lu_factor_ex",
                     "linalg_qr", "linalg_inv_ex", "linalg_householder_product", "cholesky_inverse",
                     "cholesky_solve"), _column_major),
    **dict.fromkeys(("linalg_lu_solve", "linalg_ldl_solve"), _solution_layout), "rot90": _rotated_layout,
}


def result_dtype(metadata: Metadata) -> dtypes.dtype:
    """The dtype of a result."""
    return dtypes.of(metadata.dtype)


__all__ = ["LAYOUTS", "RULES", "Metadata", "infer", "reduced", "result_dtype"]
