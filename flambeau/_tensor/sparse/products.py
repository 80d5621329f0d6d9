"""Matrix products with sparse operands: `mm`, `addmm`, `mv`, `bmm` and those of `torch.sparse`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backends.compiled import sparse_kernels
from ...backends.sparse_array import CompressedArray, CooArray, SparseArray
from ...devices import sparse_bsc, sparse_bsr, sparse_csc, sparse_csr, strided
from ...engine.grad_mode import grad_mode
from ...engine.tensor_interface import layer
from ...kernels.sparse import compress, decompress
from ...kernels.sparse_formats import compressed_to_coo
from ...kernels.sparse_products import csr_times_csr, csr_times_dense, sort_by_row
from ...modes import dispatch_in_use, special
from ..overriding.aten_arguments import aten_overload
from ..overriding.dispatch import ask, dispatch_modes, handling_inputs, no_dispatch
from ..tensor import Tensor, wrap
from .conversion import coalesced, layout_name, to_compressed_array, to_coo_array
from .recording import is_compressed, is_coo, is_sparse, make, needs, record


def _fn() -> Any:
    return layer.functions


# ----- kernels -----------------------------------------------------------------------------------


def _as_csr(a: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """CSR components of a sparse matrix; columns of a row may repeat."""
    if isinstance(a, CooArray):
        return sort_by_row(a.indices, a.values, a.shape[0])
    if a.layout is sparse_csr:
        return a.compressed, a.plain, a.values
    if a.layout is sparse_csc:
        columns = decompress(a.compressed)
        order = np.argsort(a.plain, kind="stable")
        return compress(a.plain, a.shape[0]), columns[order], a.values[order]
    indices, values = compressed_to_coo((a.compressed, a.plain, a.values), a.by_row,
                                        a.block_shape if a.has_blocks else None)
    return compress(indices[0], a.shape[0]), indices[1], values


def times_dense(a: Any, dense: np.ndarray) -> np.ndarray:
    """A sparse matrix times a dense matrix or vector."""
    kernels = sparse_kernels(a.values.size * (dense.shape[1] if dense.ndim == 2 else 1))
    out = None if kernels is None or a.values.ndim != 1 else _by_kernel(kernels, a, dense)
    return csr_times_dense(*_as_csr(a), dense) if out is None else out


def _by_kernel(kernels: Any, a: Any, dense: np.ndarray) -> np.ndarray | None:
    """`times_dense` by a compiled kernel, without a conversion of the sparse matrix; None: there is no kernel."""
    rows, columns = a.shape
    result: np.ndarray | None
    if isinstance(a, CooArray):
        if a.coalesced:
            result = kernels.gather(a.indices[0], a.indices[1], a.values, dense, (rows, columns), False)
        else:
            result = kernels.scatter(a.indices[1], a.indices[0], a.values, dense, (columns, rows), False)
    elif a.layout is sparse_csr:
        result = kernels.gather(a.compressed, a.plain, a.values, dense, (rows, columns), True)
    else:
        result = kernels.scatter(a.compressed, a.plain, a.values, dense, (columns, rows), True)
    return result


def _sample(a: Any, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The values of left @ right at the places of a sparse matrix, CSR or coalesced COO."""
    is_csr = isinstance(a, CompressedArray)
    outer, inner = (a.compressed, a.plain) if is_csr else a.indices
    kernels = sparse_kernels(inner.size * left.shape[1])
    values = None if kernels is None else kernels.sample(outer, inner, left, right, is_csr)
    if values is not None:
        return np.asarray(values)
    rows = decompress(outer) if is_csr else outer
    return np.asarray(np.einsum("ik,ik->i", left[rows], right.T[inner]))


def _check_types(*tensors: Tensor) -> None:
    first = tensors[0].dtype
    for x in tensors[1:]:
        if x.dtype is not first:
            raise RuntimeError(f"expected scalar type {first.scalar_name} but found {x.dtype.scalar_name}")


def _adjoint(x: Tensor) -> Tensor:
    return x.t().conj() if x._array.dtype.kind == "c" else x.t()


def _check_matrices(x: Tensor, y: Tensor, name: str = "mm") -> None:
    a, b = x._array.shape, y._array.shape
    if len(a) != 2 or len(b) != 2:
        raise RuntimeError(f"{name}: Expected 2-D matrices, got {len(a)}-D and {len(b)}-D tensors")
    if a[1] != b[0]:
        if is_coo(x) and not is_sparse(y):
            raise RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size {a[1]}, got {b[0]}")
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a[0]}x{a[1]} and {b[0]}x{b[1]})")


def _product(x: Tensor, y: Tensor) -> Any:
    """The array of x @ y for matrices of which at least one is sparse."""
    _check_matrices(x, y)
    a: Any = x._array
    b: Any = y._array
    if isinstance(a, SparseArray) and isinstance(b, SparseArray):
        _check_types(x, y)
        return _sparse_product(a, b)
    if not (isinstance(a, SparseArray) or isinstance(b, SparseArray)):
        return _fn().mm(x.detach(), y.detach())._array
    for at, array in enumerate((a, b)):
        if isinstance(array, CompressedArray) and array.layout is (sparse_bsr if at else sparse_bsc):
            raise RuntimeError("addmm: computation on CPU is not implemented for Strided + "
                               f"{layout_name(a)} @ {layout_name(b)}")
    _check_types(x, y)
    if isinstance(a, SparseArray):
        if isinstance(a, CooArray) and a.dense_dim:
            raise RuntimeError(f"addmm: Argument #2 (sparse): Expected 2 sparse dims, got {a.sparse_dim}")
        return times_dense(a, b)
    return np.ascontiguousarray(times_dense(_transposed(b), np.ascontiguousarray(a.T)).T)


def _transposed(a: Any) -> Any:
    if isinstance(a, CooArray):
        return CooArray(a.indices[::-1], a.values, (a.shape[1], a.shape[0]), False)
    swap = {sparse_csr: sparse_csc, sparse_csc: sparse_csr}
    if a.layout in swap:
        return CompressedArray(swap[a.layout], a.compressed, a.plain, a.values, (a.shape[1], a.shape[0]))
    return _transposed(to_coo_array(a))


def _sparse_product(a: Any, b: Any) -> Any:
    shape = (a.shape[0], b.shape[1])
    if isinstance(a, CooArray) and isinstance(b, CooArray):
        for each in (a, b):
            if each.dense_dim:
                raise RuntimeError("sparse_sparse_matmul_cpu: scalar values expected, got "
                                   f"{each.dense_dim}D values")
        first, second = _as_csr(coalesced(a)), _as_csr(coalesced(b))
        return CooArray(*csr_times_csr(first, second, shape), shape, True)
    if isinstance(a, CompressedArray) and isinstance(b, CompressedArray) and not (a.has_blocks or b.has_blocks):
        indices, values = csr_times_csr(_as_csr(a), _as_csr(b), shape)
        return to_compressed_array(CooArray(indices, values, shape, True), sparse_csr, None)
    raise RuntimeError(f"addmm: computation on CPU is not implemented for {layout_name(a)} + {layout_name(a)} @ "
                       f"{layout_name(b)}")


# ----- mm, addmm, mv, bmm ------------------------------------------------------------------------


def mm(x: Tensor, y: Tensor) -> Tensor:
    """x @ y for matrices of which at least one is sparse."""
    out = make(_product(x, y))
    return record(out, "MmBackward0", (x, y), lambda g: (
        g.mm(_adjoint(y)) if needs(x) else None, _adjoint(x).mm(g) if needs(y) else None),
        (y if needs(x) else None, x if needs(y) else None))


def _scaled_sum(input: Tensor, product: Any, beta: Any, alpha: Any) -> Any:
    """The array beta * input + alpha * product."""
    fn = _fn()
    total = make(product)
    if alpha != 1:
        total = fn.mul(total, alpha)
    if beta == 0 and not is_sparse(input):
        return (total.to_dense() if is_sparse(total) else total)._array
    if is_compressed(input) and is_compressed(total) and input.layout is sparse_csc:
        total = total.to_sparse_csc()
    if beta == 0 and is_compressed(input) and is_compressed(total):  # NaN in the input is not multiplied by 0
        return total._array
    scaled = input.detach() if beta == 1 else fn.mul(input.detach(), beta)
    if is_sparse(scaled) and not is_sparse(total):
        return fn.add(total, scaled)._array
    if not is_sparse(scaled) and is_sparse(total):
        return fn.add(scaled.expand(total._array.shape), total)._array
    return fn.add(scaled, total)._array


def _check_layouts(*tensors: Tensor) -> None:
    """Raise PyTorch's error where `addmm` has no product for the layouts of its three tensors."""
    layouts = [x.layout for x in tensors]
    first = layouts[0]
    if (first is sparse_csr and strided in layouts) or (first is sparse_csc and layouts != [sparse_csc] * 3) or (
            layouts == [strided, sparse_csc, sparse_csr]):
        input, mat1, mat2 = map(layout_name, tensors)
        raise RuntimeError(f"addmm: computation on CPU is not implemented for {input} + {mat1} @ {mat2}")


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * mat1 @ mat2 with sparse operands."""
    _check_matrices(mat1, mat2, "addmm")
    _check_types(mat1, mat2, input)
    if is_coo(mat1) and is_sparse(mat2) and not is_sparse(input):
        raise RuntimeError("addmm: computation on CPU is not implemented for Strided + "
                           f"{layout_name(mat1)} @ {layout_name(mat2)}")
    _check_layouts(input, mat1, mat2)
    shape = (mat1._array.shape[0], mat2._array.shape[1])
    if not is_sparse(input):
        try:
            expanded = np.broadcast_shapes(input._array.shape, shape)
        except ValueError:
            expanded = ()
        if expanded != shape:
            raise RuntimeError(f"The expanded size of the tensor ({shape[-1]}) must match the existing size "
                               f"({input._array.shape[-1] if input._array.ndim else 1}) at non-singleton dimension 1.  "
                               f"Target sizes: {list(shape)}.  Tensor sizes: {list(input._array.shape)}")
    out = make(_scaled_sum(input, _product(mat1, mat2), beta, alpha))
    return record(out, "AddmmBackward0", (input, mat1, mat2), lambda g: (
        _times(g, beta).sum_to_size(input._array.shape) if needs(input) else None,
        _times(g.mm(_adjoint(mat2)), alpha) if needs(mat1) else None,
        _times(_adjoint(mat1).mm(g), alpha) if needs(mat2) else None),
        (mat2 if needs(mat1) else None, mat1 if needs(mat2) else None))


def _times(x: Tensor, factor: Any) -> Tensor:
    return x if factor == 1 else _fn().mul(x, factor)


def mv(x: Tensor, vec: Tensor) -> Tensor:
    """A sparse matrix times a dense vector."""
    if x._array.ndim != 2 or vec._array.ndim != 1:
        raise RuntimeError(f"mv: two tensor dim should be 2 and 1, but got SparseTensor Dim: {x._array.ndim}"
                           f"Tensor Dim: {vec._array.ndim}")
    if x._array.shape[1] != vec._array.shape[0]:
        raise RuntimeError("mv: expected self.size(-1) == vec.size(-1)")
    _check_types(x, vec)
    if is_compressed(x) and x.layout is sparse_bsc:
        raise RuntimeError("torch.addmv: operation not supported for mat with SparseBsc layout")
    out = wrap(times_dense(x._array, vec.to_dense()._array))
    return record(out, "MvBackward0", (x, vec), lambda g: (
        _fn().outer(g, vec.conj()) if needs(x) else None, _adjoint(x).mv(g) if needs(vec) else None),
        (vec if needs(x) else None, x if needs(vec) else None))


def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * mat @ vec with a sparse matrix."""
    product = times_dense(mat._array, vec._array)
    out = wrap(_scaled_sum(input, product, beta, alpha))
    return record(out, "AddmvBackward0", (input, mat, vec), lambda g: (
        _times(g, beta), _times(_fn().outer(g, vec.conj()), alpha) if needs(mat) else None,
        _times(_adjoint(mat).mv(g), alpha) if needs(vec) else None), (mat, vec))


def bmm(x: Tensor, y: Tensor) -> Tensor:
    """A batch of sparse matrices times a batch of dense ones."""
    a: Any = x._array
    if not is_sparse(x):
        return bmm(_swap(y), _swap(x)).transpose(1, 2)
    if is_sparse(y):
        raise RuntimeError("bmm_sparse: Tensor 'mat2' must be dense")
    if isinstance(a, CooArray):
        if a.dense_dim:
            raise RuntimeError(f"bmm_sparse: Tensor 'self' must have 0 dense dims, but has {a.dense_dim}")
        if a.sparse_dim != 3:
            raise RuntimeError(f"bmm_sparse: Tensor 'self' must have 3 sparse dims, but has {a.sparse_dim}")
    b = y._array
    if b.ndim != 3:
        raise RuntimeError(f"bmm_sparse: Tensor 'mat2' must have 3 dims, but has {b.ndim}")
    if a.shape[0] != b.shape[0]:
        raise RuntimeError("bmm_sparse: 'self.size(0)' and 'mat2.size(0)' must match")
    if a.shape[2] != b.shape[1]:
        raise RuntimeError("bmm_sparse: 'self.size(2)' and 'mat2.size(1)' must match")
    _check_types(x, y)
    c = to_coo_array(a)
    count, rows, inner = a.shape
    # one block-diagonal product
    indices = np.stack([c.indices[0] * rows + c.indices[1], c.indices[0] * inner + c.indices[2]])
    wide = CooArray(indices, c.values, (count * rows, count * inner), c.coalesced)
    result = times_dense(wide, np.ascontiguousarray(b).reshape(count * inner, b.shape[2]))
    out = wrap(result.reshape(count, rows, b.shape[2]))
    return record(out, "BmmBackward0", (x, y), lambda g: (
        _fn().bmm(g, y.transpose(1, 2).conj()) if needs(x) else None,
        _fn().bmm(x.transpose(1, 2).conj(), g) if needs(y) else None),
        (y if needs(x) else None, x if needs(y) else None))


def _swap(x: Tensor) -> Tensor:
    return x.transpose(1, 2)


def matmul(x: Tensor, y: Tensor) -> Tensor:
    """torch.matmul with sparse operands: by dimensions, `mv`, `mm` or `bmm`."""
    fn = _fn()
    a, b = x._array.ndim, y._array.ndim
    if a == 1 and b == 1:
        return fn.dot(x, y)
    if a == 2 and b == 1:
        return fn.mv(x, y)
    if a == 1 and b == 2:
        return fn.mm(x.unsqueeze(0), y).squeeze(0)
    if a == 2 and b == 2:
        return fn.mm(x, y)
    if a == 3 and b == 3:
        return fn.bmm(x, y)
    if a >= 3 and b in (1, 2) and not is_sparse(x):
        folded = x.reshape((-1, x._array.shape[-1]))
        product = fn.mm(folded, y) if b == 2 else fn.mv(folded, y)
        return product.reshape((*x._array.shape[:-1], *y._array.shape[1:]))
    if is_sparse(x) and a == 2 and b == 3:
        count, inner, width = y._array.shape
        flat = y.permute(1, 0, 2).reshape((inner, count * width))
        return fn.mm(x, flat).reshape((x._array.shape[0], count, width)).permute(1, 0, 2)
    raise RuntimeError("matmul: sparse operands of these dimensions are not supported")


# ----- torch.sparse ------------------------------------------------------------------------------


def _masked_gradient(g: Tensor, mat1: Tensor, mat2: Tensor, alpha: Any) -> Tensor:
    """The gradient of the sparse factor, at its places only."""
    if is_compressed(mat1) and mat1.layout is not sparse_csr:
        raise RuntimeError("sparse_addmm_sparse_backward: unsupported combination of layouts, grad: "
                           f"{layout_name(g)}, mat1: {layout_name(mat1)}, mat2: {layout_name(mat2)}")
    if is_sparse(mat1):
        mask = mat1.detach()
        mask = mask.coalesce() if is_coo(mask) else mask
        a: Any = mask._array
        if not (grad_mode.get() or is_sparse(g) or is_sparse(mat2)) and a.values.ndim == 1 and a.dtype.kind == "f" \
                and a.dtype.itemsize >= 4:
            return _times(make(a.with_values(_sample(a, g._array, _adjoint(mat2)._array))), alpha)
        return _times(g.mm(_adjoint(mat2)).sparse_mask(mask), alpha)
    return _times(g.mm(_adjoint(mat2)), alpha)


def sparse_addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1., alpha: Any = 1.) -> Tensor:
    """beta * mat + alpha * mat1 @ mat2; the gradient of a sparse `mat1` has its places.

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.addmm.html

    Args:
        mat: (m, n), dense.
        mat1: (m, k), sparse.
        mat2: (k, n), dense.

    >>> import flambeau as torch
    >>> torch.sparse.addmm(torch.ones(2, 1), torch.eye(2).to_sparse(), torch.tensor([[3.], [4.]]))
    tensor([[4.],
            [5.]])
    """
    _check_matrices(mat1, mat2, "addmm")
    _check_types(mat1, mat2, mat)
    out = make(_scaled_sum(mat, _product(mat1, mat2), beta, alpha))
    return record(out, "SparseAddmmBackward0", (mat, mat1, mat2), lambda g: (
        _times(g, beta).sum_to_size(mat._array.shape) if needs(mat) else None,
        _masked_gradient(g, mat1, mat2, alpha) if needs(mat1) else None,
        _times(_adjoint(mat1).mm(g), alpha) if needs(mat2) else None),
        (mat2 if needs(mat1) else None, mat1))


#: name -> the reduction
_REDUCTIONS = {"sum": "sum", "mean": "mean", "amax": "amax", "amin": "amin", "max": "amax", "min": "amin"}


def sparse_mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """mat1 @ mat2 for a sparse factor; its gradient has its places.

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.mm.html

    Args:
        mat1: (m, k); mat2: (k, n), of which at least one is sparse.
        reduce: for a CSR matrix, the reduction of the products of a row: "sum", "mean", "max" or "min".

    >>> import flambeau as torch
    >>> torch.sparse.mm(torch.eye(2).to_sparse(), torch.tensor([[3.], [4.]]))
    tensor([[3.],
            [4.]])
    """
    if reduce is not None:
        if special[0] and dispatch_in_use[0]:
            found = handling_inputs((mat1, mat2))
            if (found or dispatch_modes.get()) and not no_dispatch.get():
                result = ask(aten_overload("_sparse_mm_reduce_impl", "default"), found, (mat1, mat2, reduce), {})
                return result[0] if isinstance(result, (tuple, list)) else result
        return _reduced_product(mat1, mat2, reduce)
    if is_coo(mat1) and is_coo(mat2):
        return _sparse_sparse_matmul(mat1, mat2)
    fn = _fn()
    if is_sparse(mat1):
        zero = fn.zeros((), dtype=mat1.dtype)
        return sparse_addmm(zero, mat1, mat2, beta=0, alpha=1)
    zero = fn.zeros((), dtype=mat1.dtype)
    return sparse_addmm(zero, mat2.transpose(-2, -1), mat1.transpose(-2, -1), beta=0, alpha=1).transpose(-2, -1)


def _sparse_sparse_matmul(x: Tensor, y: Tensor) -> Tensor:
    for name, each in (("mat1_", x), ("mat2_", y)):
        if each._array.ndim != 2:
            raise RuntimeError(f"Expected {name}.dim() == 2 to be true, but got false.  (Could this error message be "
                               "improved?  If so, please report an enhancement request to PyTorch.)")
    if x._array.shape[1] != y._array.shape[0]:
        a, b = x._array.shape, y._array.shape
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a[0]}x{a[1]} and {b[0]}x{b[1]})")
    if x.dtype is not y.dtype:
        raise RuntimeError(f"mat1 dtype {x.dtype.scalar_name} does not match mat2 dtype {y.dtype.scalar_name}")
    out = make(_sparse_product(x._array, y._array))

    def gradient(g: Tensor, left: Tensor, right: Tensor, like: Tensor) -> Tensor:
        product = _sparse_sparse_matmul(left, right)
        mask = like.detach().coalesce()
        return product.sparse_mask(mask)

    def rule(g: Tensor) -> tuple[Any, ...]:
        g = g if is_sparse(g) else g.to_sparse()
        return (gradient(g, g, _adjoint(y), x) if needs(x) else None,
                gradient(g, _adjoint(x), g, y) if needs(y) else None)

    return record(out, "SparseSparseMatmulBackward0", (x, y), rule, (x, y))


def _reduced_product(mat1: Tensor, mat2: Tensor, reduce: str) -> Tensor:
    """A product of a CSR matrix whose sums over a row are another reduction."""
    if reduce == "prod":
        raise RuntimeError("sparse_mm_reduce: reduce type of prod has not been enabled.")
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    a: Any = mat1._array
    if not is_sparse(mat1) or a.layout is not sparse_csr:
        raise RuntimeError(f"sparse_mm_reduce: expect self to be SparseCsr, got {layout_name(a)}")
    fn = _fn()
    rows = wrap(decompress(a.compressed).astype(np.int64))
    columns = wrap(a.plain.astype(np.int64))
    kind = _REDUCTIONS[reduce]

    def shape_as(index: Tensor, x: Tensor) -> Tensor:
        return index.unsqueeze(1).expand(x._array.shape)

    token = grad_mode.set(False)
    try:
        values = wrap(a.values)
        products = values.unsqueeze(1) * fn.index_select(mat2, 0, columns)
        zeros = fn.zeros((a.shape[0], mat2._array.shape[1]), dtype=mat1.dtype)
        index = shape_as(rows, products)
        out: Tensor = fn.scatter_reduce(zeros, 0, index, products, kind, include_self=False)
    finally:
        grad_mode.reset(token)

    def rule(g: Tensor) -> tuple[Tensor | None, Tensor | None]:
        token = grad_mode.set(False)
        try:
            each = fn.index_select(g, 0, rows)  # (nonzeros, n), of the products
            if kind == "mean":
                each = each / wrap(np.diff(a.compressed).astype(a.values.dtype))[rows].unsqueeze(1)
            elif kind != "sum":  # the first of equal products
                numbers = shape_as(fn.arange(products._array.shape[0]), products)
                equal = products == fn.index_select(out, 0, rows)
                first = fn.scatter_reduce(fn.zeros_like(out, dtype=numbers.dtype), 0, index, fn.where(
                    equal, numbers, products._array.shape[0]), "amin", include_self=False)
                each = each * (numbers == fn.index_select(first, 0, rows))
            of_sparse = of_dense = None
            if needs(mat1):
                of_values = (each * fn.index_select(mat2, 0, columns)).sum(1)
                of_sparse = make(a.with_values(of_values._array))
            if needs(mat2):
                of_dense = fn.index_add(fn.zeros_like(mat2), 0, columns, each * values.unsqueeze(1))
            return of_sparse, of_dense
        finally:
            grad_mode.reset(token)

    return record(out, "SparseMmReduceImplBackward0", (mat1, mat2), rule, (mat2,))


def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1., alpha: Any = 1.,
                  out: Any = None) -> Tensor:
    """alpha * (mat1 @ mat2) at the places of `input`, plus beta * input.

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.sampled_addmm.html

    Args:
        input: (m, n), CSR.
        mat1: (m, k), dense.
        mat2: (k, n), dense.

    >>> import flambeau as torch
    >>> x = torch.eye(2).to_sparse_csr()
    >>> torch.sparse.sampled_addmm(x, torch.ones(2, 3), torch.ones(3, 2)).values()
    tensor([4., 4.])
    """
    a: Any = input._array
    if not is_compressed(input) or a.layout is not sparse_csr:
        raise RuntimeError(f"sampled_addmm: Expected self to have sparse csr layout, got layout {layout_name(a)}")
    for name, x in (("mat1", mat1), ("mat2", mat2)):
        if is_sparse(x):
            raise RuntimeError(f"sampled_addmm: Expected {name} to have strided layout, got layout {layout_name(x)}")
    if mat1._array.shape[-1] != mat2._array.shape[-2]:
        m, n = mat1._array.shape[-2:], mat2._array.shape[-2:]
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({m[0]}x{m[1]} and {n[0]}x{n[1]})")
    _check_types(input, mat1, mat2)
    sampled = _sample(a, mat1._array, mat2._array).astype(a.values.dtype, copy=False)
    result = make(a.with_values((beta * a.values + alpha * sampled).astype(a.values.dtype, copy=False)))

    def rule(g: Tensor) -> tuple[Any, ...]:
        masked = g if is_sparse(g) else g.sparse_mask(input.detach())
        return (_times(masked, beta) if needs(input) else None,
                _times(masked.mm(_adjoint(mat2)), alpha) if needs(mat1) else None,
                _times(_adjoint(mat1).mm(masked), alpha) if needs(mat2) else None)

    result = record(result, "SparseSampledAddmmBackward0", (input, mat1, mat2), rule, (mat1, mat2))
    if out is not None:
        out._array = result._array
        return out
    return result


__all__ = ["addmm", "addmv", "bmm", "matmul", "mm", "mv", "sampled_addmm", "sparse_addmm", "sparse_mm",
           "times_dense"]
