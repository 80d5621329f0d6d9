"""Products of matrices and vectors: mm, bmm, mv, dot, addmm and relatives, cross, trace.

`matmul`, `linear` and `einsum` are composites of these in the tensor layer; they select by rank and strides.
"""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes
from ..declare import linear, not_implemented, not_implemented_error, op
from .matmul_checks import (
    check_addbmm,
    check_addmm,
    check_addmv,
    check_addr,
    check_baddbmm,
    check_bmm,
    check_cross,
    check_dot,
    check_mm,
    check_mv,
)

# ----- matmuls -------------------------------------------------------------------------


def _is_column_major(strides: tuple[int, ...]) -> bool:
    """Return whether a matrix is column-major; its gradient then is column-major too."""
    return strides[0] < strides[1]


_PRODUCT = ("torch", "method", "inplace")
#: dtype categories without matmul in PyTorch
_NO_MATMUL = ("bool", "unsigned")
#: number of multiplications from which PyTorch computes `bmm` by one GEMM per batch element
#: number of elements up to which a batch of inner products is a product and a sum: one temporary, and fewer operators
_SUMMED_PRODUCTS = 1 << 16
_DOT_OUT = "result dtype {out} does not match input dtype {result}"
_LARGE_BMM = 400


def _missing_kernel(kernel, n, m, p):
    """Return PyTorch's error for a missing kernel of a matmul (n, m) by (m, p), or of a batch of them."""
    large = kernel.endswith("bmm") and n * m * p >= _LARGE_BMM
    return not_implemented_error("addmm_impl_cpu_" if large else kernel)


def _unsupported_in_product(kernel):
    """Return a value for `unsupported_dtypes=`: that error for the last two inputs; empty ones raise none."""
    def error(*inputs, **_):
        left, right = (x.shape for x in inputs[-2:])
        return None if 0 in left or 0 in right else _missing_kernel(kernel, left[-2], left[-1], right[-1])

    return dict.fromkeys(_NO_MATMUL, error)


def _unsupported_in_trilinear(input1, weight, input2):
    """Return that error for `_trilinear`, which PyTorch computes by `bmm`."""
    if 0 in input1.shape or 0 in weight.shape:
        return None
    return _missing_kernel("bmm", input1.shape[0], *weight.shape[1:])


@linear("input", "mat2", check=check_mm, unsupported_dtypes=_unsupported_in_product("addmm_impl_cpu_"), exact_out=True,
        saved="mat2 mat2_sym_sizes mat2_sym_strides self self_sym_sizes self_sym_strides")
def mm(xp, input, mat2):
    """The matrix product, (n, m) by (m, p).

    >>> import flambeau as torch
    >>> torch.mm(torch.ones(2, 3), torch.ones(3, 1))
    tensor([[3.],
            [3.]])
    """
    return xp.mm(input, mat2)


def _mm_vjp_input(xp, g, mat2, strides):
    if _is_column_major(strides):
        return xp.t(xp.mm(mat2, xp.t(g)))
    return xp.mm(g, xp.t(mat2))


def _mm_vjp_mat2(xp, g, mat1, strides):
    if _is_column_major(strides):
        return xp.t(xp.mm(xp.t(g), mat1))
    return xp.mm(xp.t(mat1), g)


mm.vjp(input=lambda xp, g, mat2, input_strides: _mm_vjp_input(xp, g, mat2, input_strides),
       mat2=lambda xp, g, input, mat2_strides: _mm_vjp_mat2(xp, g, input, mat2_strides))


def _product_of_batches(xp, left, right):
    """Compute (…, n, m) by (…, m, p) for the same leading dimensions, by one `bmm`."""
    if left.ndim == 3:
        return xp.bmm(left, right)
    *sizes, n, m = left.shape
    count = math.prod(sizes)
    product = xp.bmm(xp.reshape(left, (count, n, m)), xp.reshape(right, (count, m, right.shape[-1])))
    return xp.reshape(product, (*sizes, n, right.shape[-1]))


mm.vmap(lambda xp, batch, input, mat2: _product_of_batches(xp, input, mat2) if all(batch.on) else xp.matmul(
    input, mat2))


@linear("input", "mat2", check=check_bmm, unsupported_dtypes=_unsupported_in_product("bmm"), exact_out=True)
def bmm(xp, input, mat2):
    """The batched matrix product, (b, n, m) by (b, m, p).

    >>> import flambeau as torch
    >>> torch.bmm(torch.ones(2, 1, 3), torch.ones(2, 3, 1)).shape
    flambeau.Size([2, 1, 1])
    """
    return xp.bmm(input, mat2)


bmm.vjp(input=lambda xp, g, mat2: xp.bmm(g, xp.transpose(mat2, 1, 2)),
        mat2=lambda xp, g, input: xp.bmm(xp.transpose(input, 1, 2), g))


def _transpose_last(xp, x):
    return xp.transpose(x, -2, -1)


def _bmm_vmap(xp, batch, left, left_on, right, right_on):
    """Compute (…, b, n, m) by (…, b, m, p); an unbatched operand multiplies the rows of all batch elements at once."""
    if left_on == right_on:
        return _product_of_batches(xp, left, right)
    if right_on:
        transposed = _bmm_vmap(xp, batch, _transpose_last(xp, right), True, _transpose_last(xp, left), False)
        return _transpose_last(xp, transposed)
    k = batch.k
    *sizes, b, n, m = left.shape
    rows = xp.reshape(xp.movedim(left, k, 0), (b, batch.count * n, m))
    product = xp.reshape(xp.bmm(rows, right), (b, *sizes, n, right.shape[-1]))
    return xp.movedim(product, 0, k)


bmm.vmap(lambda xp, batch, input, mat2: _bmm_vmap(xp, batch, input, batch.on[0], mat2, batch.on[1]))


@linear("input", "vec", check=check_mv, unsupported_dtypes=_unsupported_in_product("addmv_impl_cpu"), exact_out=True)
def mv(xp, input, vec):
    """The matrix-vector product, (n, m) by (m).

    >>> import flambeau as torch
    >>> torch.mv(torch.ones(2, 3), torch.ones(3))
    tensor([3., 3.])
    """
    return xp.mm(input, vec)


mv.vjp(input=lambda xp, g, vec: xp.unsqueeze(g, 1) * vec,
       vec=lambda xp, g, input: xp.mv(xp.t(input), g))


def _mv_vmap(xp, mat, mat_on, vec, vec_on):
    if not vec_on:
        return xp.matmul(mat, vec)
    if not mat_on:
        return xp.matmul(vec, xp.t(mat))
    return xp.squeeze(_product_of_batches(xp, mat, xp.unsqueeze(vec, -1)), -1)


mv.vmap(lambda xp, batch, input, vec: _mv_vmap(xp, input, batch.on[0], vec, batch.on[1]))


@linear("input", "tensor", check=check_dot, unsupported_dtypes=not_implemented("dot", *_NO_MATMUL), exact_out=_DOT_OUT)
def dot(xp, input, tensor):
    """The inner product of two vectors, without conjugation.

    >>> import flambeau as torch
    >>> torch.dot(torch.tensor([2, 3]), torch.tensor([2, 1]))
    tensor(7)
    """
    return xp.mm(input, tensor)


dot.vjp(input=lambda g, tensor: g * tensor,
        tensor=lambda g, input: g * input)


def _dot_vmap(xp, x, x_on, y, y_on):
    if x_on and y_on and x.dtype is y.dtype and x.dtype in (dtypes.float32, dtypes.float64) and (
            math.prod(x.shape) <= _SUMMED_PRODUCTS):
        return xp.sum(x * y, dim=-1)
    if x_on and y_on:
        return xp.reshape(_product_of_batches(xp, xp.unsqueeze(x, -2), xp.unsqueeze(y, -1)), x.shape[:-1])
    return xp.matmul(x, y) if x_on else xp.matmul(y, x)


dot.vmap(lambda xp, batch, input, tensor: _dot_vmap(xp, input, batch.on[0], tensor, batch.on[1]))


@linear("input", "other", check=check_dot, holomorphic=False, exact_out=_DOT_OUT,
        unsupported_dtypes=not_implemented("dot", *_NO_MATMUL))
def vdot(xp, input, other):
    """The inner product of two vectors, the first conjugated.

    >>> import flambeau as torch
    >>> torch.vdot(torch.tensor([1j]), torch.tensor([1j]))
    tensor(1.+0.j)
    """
    return xp.mm(xp.conj(input), other)


vdot.vjp(input=lambda xp, g, other: xp.conj(g) * other,
         other=lambda g, input: g * input)
vdot.vmap(lambda xp, batch, input, other: _dot_vmap(
    xp, xp.conj(input), batch.on[0], other, batch.on[1]))


# ----- scaled sums of an input and a matmul ------------------------------------------------------


def _scale(x: Any, factor: Any) -> Any:
    return x if factor == 1 else x * factor


def _add_optional(x: Any, y: Any) -> Any:
    return y if x is None else x if y is None else x + y


@op(check=check_addmm, expose=_PRODUCT, unsupported_dtypes=_unsupported_in_product("addmm_impl_cpu_"), exact_out=True,
    saved="alpha beta mat1 mat1_sym_sizes mat1_sym_strides mat2 mat2_sym_sizes mat2_sym_strides")
def addmm(xp, input, mat1, mat2, *, beta=1, alpha=1):
    """beta · input + alpha · (mat1 @ mat2).

    >>> import flambeau as torch
    >>> torch.addmm(torch.tensor([1., 2.]), torch.ones(1, 3), torch.ones(3, 2))
    tensor([[4., 5.]])
    """
    return xp.add_matmul(input, mat1, mat2, beta, alpha)


def _add_batched_product(batch, input, product, beta, alpha, ndim):
    """Return beta · input + alpha · product on a batch; the product has `ndim` dimensions behind the batch's."""
    total = _scale(product if any(batch.on[1:]) else batch.expand_levels(product), alpha)
    return total if beta == 0 else _scale(batch.padded(0, input, ndim), beta) + total


addmm.vjp(input=lambda xp, g, input_shape, beta: xp.sum_to_size(_scale(g, beta), input_shape),
          mat1=lambda xp, g, mat2, mat1_strides, alpha: _scale(_mm_vjp_input(xp, g, mat2, mat1_strides), alpha),
          mat2=lambda xp, g, mat1, mat2_strides, alpha: _scale(_mm_vjp_mat2(xp, g, mat1, mat2_strides), alpha))


def _addmm_jvp(xp, product, t_input, x, t_x, y, t_y, beta, alpha):
    total = None
    if t_x is not None:
        total = product(t_x, y)
    if t_y is not None:
        total = _add_optional(total, product(x, t_y))
    if total is not None:
        total = _scale(total, alpha)
    return _add_optional(total, None if t_input is None else _scale(t_input, beta))


addmm.jvp(lambda xp, t_input, mat1, t_mat1, mat2, t_mat2, beta, alpha: _addmm_jvp(
    xp, xp.mm, t_input, mat1, t_mat1, mat2, t_mat2, beta, alpha))


addmm.vmap(lambda xp, batch, input, mat1, mat2, *, beta=1, alpha=1: _add_batched_product(
    batch, input, xp.matmul(mat1, mat2), beta, alpha, 2))


@op(check=check_addmv, expose=_PRODUCT, unsupported_dtypes=_unsupported_in_product("addmv_impl_cpu"), exact_out=True,
    saved="alpha beta mat vec")
def addmv(xp, input, mat, vec, *, beta=1, alpha=1):
    """beta · input + alpha · (mat @ vec).

    >>> import flambeau as torch
    >>> torch.addmv(torch.tensor([1., 2.]), torch.ones(2, 3), torch.ones(3))
    tensor([4., 5.])
    """
    return xp.add_matmul(input, mat, vec, beta, alpha)


addmv.vjp(input=lambda xp, g, input_shape, beta: xp.sum_to_size(_scale(g, beta), input_shape),
          mat=lambda xp, g, vec, alpha: _scale(xp.unsqueeze(g, 1) * vec, alpha),
          vec=lambda xp, g, mat, alpha: _scale(xp.mv(xp.t(mat), g), alpha))
addmv.jvp(lambda xp, t_input, mat, t_mat, vec, t_vec, beta, alpha: _addmm_jvp(
    xp, xp.mv, t_input, mat, t_mat, vec, t_vec, beta, alpha))
addmv.vmap(lambda xp, batch, input, mat, vec, *, beta=1, alpha=1: _add_batched_product(
    batch, input, _mv_vmap(xp, mat, batch.on[1], vec, batch.on[2]), beta, alpha, 1))


@op(check=check_baddbmm, expose=_PRODUCT, unsupported_dtypes=_unsupported_in_product("baddbmm"), exact_out=True,
    saved="alpha batch1 batch2 beta")
def baddbmm(xp, input, batch1, batch2, *, beta=1, alpha=1):
    """beta · input + alpha · (batch1 @ batch2), for each batch element.

    >>> import flambeau as torch
    >>> torch.baddbmm(torch.ones(1), torch.ones(2, 1, 3), torch.ones(2, 3, 1)).flatten()
    tensor([4., 4.])
    """
    return xp.add_matmul(input, batch1, batch2, beta, alpha)


baddbmm.vjp(input=lambda xp, g, input_shape, beta: xp.sum_to_size(_scale(g, beta), input_shape),
            batch1=lambda xp, g, batch2, alpha: _scale(xp.bmm(g, xp.transpose(batch2, 1, 2)), alpha),
            batch2=lambda xp, g, batch1, alpha: _scale(xp.bmm(xp.transpose(batch1, 1, 2), g), alpha))
baddbmm.jvp(lambda xp, t_input, batch1, t_batch1, batch2, t_batch2, beta, alpha: _addmm_jvp(
    xp, xp.bmm, t_input, batch1, t_batch1, batch2, t_batch2, beta, alpha))
baddbmm.vmap(lambda xp, batch, input, batch1, batch2, *, beta=1, alpha=1: _add_batched_product(
    batch, input, _bmm_vmap(xp, batch, batch1, batch.on[1], batch2, batch.on[2]), beta, alpha, 3))


@op(check=check_addbmm, expose=_PRODUCT, unsupported_dtypes=_unsupported_in_product("addmm_impl_cpu_"), exact_out=True,
    saved="alpha batch1 batch1_sym_argsize_0 batch1_sym_argsize_1 batch2 batch2_sym_argsize_2 beta")
def addbmm(xp, input, batch1, batch2, *, beta=1, alpha=1):
    """beta · input + alpha · Σ (batch1 @ batch2) over the batch.

    >>> import flambeau as torch
    >>> torch.addbmm(torch.ones(1, 1), torch.ones(2, 1, 3), torch.ones(2, 3, 1))
    tensor([[7.]])
    """
    return xp.addbmm(input, batch1, batch2, beta, alpha)


def _expand_over_batch(xp, g, batch):
    return xp.broadcast_to(xp.unsqueeze(g, 0), (batch, g.shape[0], g.shape[1]))


addbmm.vjp(
    input=lambda xp, g, input_shape, beta: xp.sum_to_size(_scale(g, beta), input_shape),
    batch1=lambda xp, g, batch2, alpha: _scale(
        xp.bmm(_expand_over_batch(xp, g, batch2.shape[0]), xp.transpose(batch2, 1, 2)), alpha),
    batch2=lambda xp, g, batch1, alpha: _scale(
        xp.bmm(xp.transpose(batch1, 1, 2), _expand_over_batch(xp, g, batch1.shape[0])), alpha))
addbmm.jvp(lambda xp, t_input, batch1, t_batch1, batch2, t_batch2, beta, alpha: _addmm_jvp(
    xp, lambda x, y: xp.sum(xp.bmm(x, y), 0), t_input, batch1, t_batch1, batch2, t_batch2, beta, alpha))
addbmm.vmap(lambda xp, batch, input, batch1, batch2, *, beta=1, alpha=1: _add_batched_product(
    batch, input, xp.sum(_bmm_vmap(xp, batch, batch1, batch.on[1], batch2, batch.on[2]), -3), beta, alpha, 2))


@op(check=check_addr, promote="common", expose=("torch", "method", "inplace"), saved="alpha beta vec1 vec2")
def addr(xp, input, vec1, vec2, *, beta=1, alpha=1):
    """beta · input + alpha · (vec1 ⊗ vec2).

    >>> import flambeau as torch
    >>> torch.addr(torch.zeros(2, 2), torch.tensor([1., 2.]), torch.tensor([3., 4.]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    return xp.addr(input, vec1, vec2, beta, alpha)


addr.vjp(input=lambda xp, g, input_shape, beta: xp.sum_to_size(_scale(g, beta), input_shape),
         vec1=lambda xp, g, vec2, alpha: _scale(xp.mv(g, vec2), alpha),
         vec2=lambda xp, g, vec1, alpha: _scale(xp.mv(xp.t(g), vec1), alpha))
addr.jvp(lambda xp, t_input, vec1, t_vec1, vec2, t_vec2, beta, alpha: _addmm_jvp(
    xp, lambda x, y: xp.unsqueeze(x, 1) * y, t_input, vec1, t_vec1, vec2, t_vec2, beta, alpha))


def _addr_vmap(xp, batch, input, vec1, vec2, beta, alpha):
    product = xp.unsqueeze(vec1, -1) * xp.unsqueeze(vec2, -2)
    if input.dtype is dtypes.bool_ and product.dtype is dtypes.bool_:
        product = batch.expand_levels(product) if not any(batch.on[1:]) else product
        total = product if alpha else xp.zeros_like(product)
        return xp.logical_or(batch.padded(0, input, 2), total) if beta else total
    return _add_batched_product(batch, input, product, beta, alpha, 2)


addr.vmap(lambda xp, batch, input, vec1, vec2, *, beta=1, alpha=1: _addr_vmap(
    xp, batch, input, vec1, vec2, beta, alpha))


# ----- trace and cross product ------------------------------------------


@linear(name="trace", holomorphic=False, unsupported_dtypes=not_implemented("trace", *_NO_MATMUL))
def trace(xp, input):
    """The sum of a matrix's diagonal.

    >>> import flambeau as torch
    >>> torch.trace(torch.tensor([[1., 2.], [3., 4.]]))
    tensor(5.)
    """
    if len(input.shape) != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {len(input.shape)}")
    return xp.sum(xp.diagonal(input, 0, 0, 1))


trace.vjp(input=lambda xp, g, input_shape: xp._embed_diagonal(
    xp.broadcast_to(g, (min(input_shape),)), size=input_shape, offset=0, dim1=0, dim2=1))
trace.vmap(lambda xp, batch, input: xp.sum(xp.diagonal(input, 0, -2, -1), -1, dtype=input.dtype))


def _unsupported_in_cross(input, other, *, dim=-1):
    rank = len(input.shape)
    fits = -rank <= dim < rank and input.shape[dim] == other.shape[dim] == 3
    return not_implemented_error("cross") if fits else None  # the forward raises


@linear("input", "other", key="linalg_cross", name="linalg_cross", node="LinalgCrossBackward0", expose=("linalg",),
        promote="common", check=check_cross, exact_out=True,
        unsupported_dtypes=dict.fromkeys(_NO_MATMUL, _unsupported_in_cross), saved="dim other self")
def linalg_cross(xp, input, other, *, dim=-1):
    """The cross product of vectors of length 3 along `dim`.

    >>> import flambeau as torch
    >>> torch.linalg.cross(torch.tensor([1., 0., 0.]), torch.tensor([0., 1., 0.]))
    tensor([0., 0., 1.])
    """
    return xp.cross(input, other, dim)


linalg_cross.vjp(
    input=lambda xp, g, other, input_shape, dim: xp.sum_to_size(xp.linalg_cross(other, g, dim=dim), input_shape),
    other=lambda xp, g, input, other_shape, dim: xp.sum_to_size(xp.linalg_cross(g, input, dim=dim), other_shape))


@linear(name="squeeze", key="_unsafe_squeeze", node="SqueezeBackward4", expose=(), opmath=False, holomorphic=False,
        saved="dim self_sym_sizes")
def _unsafe_squeeze(xp, input, *, dim):
    """`squeeze_` of a temporary, not tracked as a view."""
    return xp.squeeze(input, dim)


_unsafe_squeeze.vjp(input=lambda xp, g, input_shape: xp.reshape(g, input_shape))


# ----- trilinear form ----------------------------------------------------------


def _apply_bilinear_maps(xp, rows, weight, dims):
    """Return rows (b, k) times the weight, permuted by `dims` to (k, o, l), as (b, o, l)."""
    permuted = xp.permute(weight, dims)
    k, o, m = permuted.shape
    return xp.reshape(xp.mm(rows, xp.reshape(permuted, (k, o * m))), (rows.shape[0], o, m))


@linear("input1", "weight", "input2", name="_trilinear", node="TrilinearBackward0", expose=(),
        unsupported_dtypes=dict.fromkeys(_NO_MATMUL, _unsupported_in_trilinear))
def _trilinear(xp, input1, weight, input2):
    """out[b, o] = Σ input1[b, i] · weight[o, i, j] · input2[b, j]."""
    return xp.trilinear(input1, weight, input2)


def _trilinear_vjp_weight(xp, g, input1, input2):
    (b, o), i, j = g.shape, input1.shape[1], input2.shape[1]
    pairs = xp.reshape(xp.unsqueeze(g, 2) * xp.unsqueeze(input1, 1), (b, o * i))
    return xp.reshape(xp.mm(xp.t(pairs), input2), (o, i, j))


_trilinear.vjp(
    input1=lambda xp, g, weight, input2: xp.sum(
        xp.unsqueeze(g, 2) * _apply_bilinear_maps(xp, input2, weight, (2, 0, 1)), 1),
    weight=lambda xp, g, input1, input2: _trilinear_vjp_weight(xp, g, input1, input2),
    input2=lambda xp, g, input1, weight: xp.sum(
        xp.unsqueeze(g, 2) * _apply_bilinear_maps(xp, input1, weight, (1, 0, 2)), 1))


def _trilinear_vmap(xp, input1, weight, input2):
    maps = xp.movedim(weight, -1, -3)  # (…, j, o, i)
    *front, j, o, i = maps.shape
    rows = xp.matmul(input2, xp.reshape(maps, (*front, j, o * i)))
    return xp.sum(xp.reshape(rows, (*rows.shape[:-1], o, i)) * xp.unsqueeze(input1, -2), -1)


_trilinear.vmap(lambda xp, batch, input1, weight, input2: _trilinear_vmap(xp, input1, weight, input2))
