"""Tensor contractions other than `einsum`: `tensordot`, `inner`, `outer`, `kron`, `multi_dot`, `matrix_power` etc."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import prod
from typing import Any

from ... import dtypes
from ...backends.numpy.memory import is_contiguous
from ...dtypes import C_NAMES
from ...engine.tensor_interface import layer
from ...ops.declare import REGISTRY
from ...shapes import wrap_dim
from ...warning_location import user_stacklevel
from ..argument_errors.out_arguments import check_records_nothing
from ..argument_errors.type_names import check_tensors, type_name
from ..dispatch.apply import apply
from ..dispatch.out_tensors import copy_out, resize_out, write_out
from ..dispatch.public_functions import public_function
from ..fastpath.repeated_calls import repeated
from ..shape.reshaping import reshaped
from ..tensor import Tensor
from .einsum import _permuted, _shape, _viewed
from .matmul import matmul, mm

__all__ = ["bilinear", "chain_matmul", "cross", "ger", "inner", "kron", "linalg_matmul", "linalg_matrix_power",
           "linalg_multi_dot", "linalg_vecdot", "matrix_power", "outer", "tensordot"]


# ----- outer and inner products ----------------------------------------------------------


def _check_vector(function: str, name: str, x: Tensor) -> None:
    if x._array.ndim != 1:
        raise RuntimeError(f"{function}: Expected 1-D argument {name}, but got {x._array.ndim}-D")


@repeated
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The outer product of two vectors, out[i, j] = input[i] · vec2[j].

    >>> import flambeau as torch
    >>> torch.outer(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    _check_vector("outer", "self", input)
    _check_vector("outer", "vec2", vec2)
    column = reshaped(input, (input._array.shape[0], 1))
    return layer.functions.mul(column, vec2, out=out)


def ger(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`outer`. With `out=` it is deprecated.

    >>> import flambeau as torch
    >>> torch.ger(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    if out is not None:
        warnings.warn("torch.ger is deprecated and will be removed in a future PyTorch release. Use torch.outer "
                      "instead.", stacklevel=user_stacklevel())
    return outer(input, vec2, out=out)


def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inner product over the last dimensions of both tensors.

    >>> import flambeau as torch
    >>> torch.inner(torch.tensor([1, 2, 3]), torch.tensor([0, 2, 1]))
    tensor(7)
    """
    a, b = _shape(input), _shape(other)
    if not a or not b:
        return layer.functions.mul(input, other, out=out)
    if a[-1] != b[-1]:
        raise RuntimeError("inner() the last dimension must match on both input tensors but got shapes "
                           f"{list(a)} and {list(b)}")
    return tensordot(input, other, ([-1], [-1]), out=out)


def _contracted(dims: Any, a: Tensor, b: Tensor) -> tuple[list[int], list[int]]:
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if not isinstance(dims, (int, tuple, list)):
        raise RuntimeError("tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] "
                           f"containing two lists, but got dims={dims}")
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a._array.ndim, b._array.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return list(range(-dims, 0)), list(range(dims))
    left, right = dims
    return ([left] if isinstance(left, int) else list(left)), ([right] if isinstance(right, int) else list(right))


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """The contraction over some dimensions of `a` and the same number of `b`.

    Args:
        dims: a number n, for the last n of `a` and the first n of `b`; or two lists of dimensions.

    >>> import flambeau as torch
    >>> torch.tensordot(torch.ones(2, 3), torch.ones(3, 4), dims=1).shape
    flambeau.Size([2, 4])
    """
    left, right = _contracted(dims, a, b)
    if len(left) != len(right):
        raise RuntimeError("both dimension lists should have same length")
    if a._array.dtype != b._array.dtype:
        raise RuntimeError("both inputs should have same dtype")
    d, e = a._array.ndim, b._array.ndim
    left_axes, right_axes = [], []
    for i, j in zip(left, right, strict=True):
        m, n = a._array.shape[wrap_dim(i, d)], b._array.shape[wrap_dim(j, e)]
        if n == 1:
            a = layer.functions.sum(a, (i,), True, dtype=a.dtype)
        elif m == 1 and n != 1:
            b = layer.functions.sum(b, (j,), True, dtype=b.dtype)
        elif m != n:
            raise RuntimeError(f"contracted dimensions need to match, but first has size {m} in dim {i} and second has "
                               f"size {n} in dim {j}")
        left_axes.append(wrap_dim(i, d))
        right_axes.append(wrap_dim(j, e))
    left_rest = [i for i in range(d) if i not in left_axes]
    right_rest = [i for i in range(e) if i not in right_axes]
    depth = prod(a._array.shape[i] for i in left_axes)
    rows = [a._array.shape[i] for i in left_rest]
    columns = [b._array.shape[i] for i in right_rest]
    x = _permuted(a, left_rest + left_axes)
    y = _permuted(b, right_axes + right_rest)
    fn = layer.functions
    if rows or columns:
        product = mm(reshaped(x, (prod(rows), depth)), reshaped(y, (depth, prod(columns))))
    elif is_contiguous(x._array) and is_contiguous(y._array):
        product = fn.dot(*(v if v._array.ndim == 1 else reshaped(v, (depth,)) for v in (x, y)))
    else:
        product = fn.sum(fn.mul(fn.squeeze(x), fn.squeeze(y)), dtype=x.dtype)
    result = reshaped(product, (*rows, *columns))
    if out is None:
        return result
    if out._requires_grad and out._array.shape != result._array.shape:
        raise RuntimeError("tensordot(): the 'out' tensor was specified and requires gradients, and its shape does not "
                           "match the expected result. Either remove the 'out' argument, ensure it does not require "
                           "gradients, or make sure its shape matches the expected output.")
    return copy_out(result, out, "tensordot: Expected the output tensor to have dtype {result}, but got an output "
                                 "tensor with dtype {out}")


@repeated
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Kronecker product: each element of `input` times all of `other`.

    >>> import flambeau as torch
    >>> torch.kron(torch.tensor([1, 2]), torch.tensor([1, 1]))
    tensor([1, 1, 2, 2])
    """
    a, b = _shape(input), _shape(other)
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
    view = REGISTRY["_unsafe_view"]
    x = apply(view, [input], {"size": tuple(s for m in a for s in (m, 1))})
    y = apply(view, [other], {"size": tuple(s for m in b for s in (1, m))})
    size = tuple(m * k for m, k in zip(a, b, strict=True))
    if out is not None:
        resize_out(out, size)
    result = apply(view, [layer.functions.mul(x, y)], {"size": size})
    return result if out is None else write_out(REGISTRY["mul"], result, out)


def linalg_vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """The inner products of vectors along `dim`; the first operand is conjugated.

    >>> import flambeau as torch
    >>> torch.linalg.vecdot(torch.tensor([[1., 2.]]), torch.tensor([[3., 4.]]))
    tensor([11.])
    """
    fn = layer.functions
    if x._array.dtype.kind not in "fcV":
        raise RuntimeError("linalg.vecdot: Expected a floating point or complex tensor as input. Got "
                           f"{x.dtype.scalar_name}")
    if x.dtype is not y.dtype:
        raise RuntimeError("linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
                           f"{x.dtype.scalar_name} and y of type {y.dtype.scalar_name} instead")
    if isinstance(out, Tensor) and out.dtype is not x.dtype:
        raise RuntimeError(f"linalg.vecdot: Expected out of dtype{x.dtype.scalar_name} but found "
                           f"{out.dtype.scalar_name}")
    if x._array.ndim == 1 and y._array.ndim == 1:
        wrap_dim(dim, 1)
        if out is not None:
            check_records_nothing("vdot", (x, y), (out,))
        result = fn.vdot(x, y)
    else:
        product = fn.mul(fn.conj(x), y)
        if out is not None:
            check_records_nothing("sum", (product,), (out,))
        result = fn.sum(product, dim)
    return result if out is None else write_out(REGISTRY["mul"], result, out)


# ----- matrix chains and powers --------------------------------------------------------------


def _best_order(shapes: list[tuple[int, ...]]) -> list[list[int]]:
    """split[i][j]: where to split the product of matrices i to j for the fewest multiplications."""
    n = len(shapes)
    sizes = [shapes[0][0], *(s[1] for s in shapes)]
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            best = None
            for k in range(i, j):
                result = cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                if best is None or result < best:
                    best, split[i][j] = result, k
            assert best is not None
            cost[i][j] = best
    return split


def _chained(matrices: list[Tensor]) -> Tensor:
    if len(matrices) == 3:
        a, b, c = matrices
        (n, m), (_, k), (_, p) = (_shape(x) for x in matrices)
        if n * k * (m + p) <= m * p * (n + k):
            return mm(mm(a, b), c)
        return mm(a, mm(b, c))
    return _product(matrices, _best_order([_shape(x) for x in matrices]), 0, len(matrices) - 1)


def _product(matrices: list[Tensor], split: list[list[int]], i: int, j: int) -> Tensor:
    """The product of matrices i to j; no closure that calls itself, whose cycle would keep the matrices alive."""
    if i == j:
        return matrices[i]
    k = split[i][j]
    return mm(_product(matrices, split, i, k), _product(matrices, split, k + 1, j))


def linalg_multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The product of matrices in the order with the fewest multiplications; the first and last may be vectors.

    Raises:
        RuntimeError: fewer than two tensors, or the shapes do not match.

    >>> import flambeau as torch
    >>> torch.linalg.multi_dot([torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 1)])
    tensor([[12.],
            [12.]])
    """
    n = len(tensors)
    if n < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {n}")
    matrices = list(tensors)
    fn = layer.functions
    size: list[int] = []
    for i, at in ((0, 0), (n - 1, 1)):
        x = matrices[i]
        if x._array.ndim == 1:
            matrices[i] = fn.unsqueeze(x, at)
        elif x._array.ndim == 2:
            size.append(x._array.shape[at])
        else:
            which = "first" if i == 0 else "last"
            raise RuntimeError(f"multi_dot(): the {which} tensor must be 1D or 2D but got {x._array.ndim}D")
    for i, x in enumerate(matrices):
        if x._array.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {x._array.ndim}D")
    for i, x in enumerate(matrices):
        if x.dtype is not matrices[0].dtype:
            raise RuntimeError("multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                               f"{C_NAMES[matrices[0].dtype.name]} and tensor {i} {C_NAMES[x.dtype.name]}")
        if i and matrices[i - 1]._array.shape[1] != x._array.shape[0]:
            raise RuntimeError(f"multi_dot(): tensors {i - 1} and {i} with shapes {list(_shape(tensors[i - 1]))} and "
                               f"{list(_shape(tensors[i]))} cannot be multiplied")
    product = mm(*matrices) if n == 2 else _chained(matrices)
    result = _viewed(product, size)
    return result if out is None else write_out(REGISTRY["mm"], result, out)


def chain_matmul(*matrices: Any, out: Tensor | None = None) -> Tensor:
    """`linalg.multi_dot` of matrices passed as separate arguments.

    >>> import flambeau as torch
    >>> torch.chain_matmul(torch.ones(2, 3), torch.ones(3, 1))
    tensor([[3.],
            [3.]])
    """
    check_tensors(matrices)
    warnings.warn("torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use "
                  "torch.linalg.multi_dot instead, which accepts a list of two or more tensors rather than multiple "
                  "parameters.", UserWarning, stacklevel=user_stacklevel())
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for x in matrices:
        if x._array.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {x._array.ndim}, expected 2 instead.")
    if len(matrices) == 1:
        result = matrices[0].clone()
        return result if out is None else write_out(REGISTRY["mm"], result, out)
    return linalg_multi_dot(matrices, out=out)


def linalg_matrix_power(A: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """The n-th power of square matrices; for negative n that of the inverse.

    >>> import flambeau as torch
    >>> torch.linalg.matrix_power(torch.tensor([[1., 1.], [0., 1.]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    if not isinstance(n, int):
        raise TypeError(f"matrix_power(): argument 'n' (position 2) must be int, not {type_name(n)}")
    shape = _shape(A)
    if len(shape) < 2:
        raise RuntimeError("linalg.matrix_power: The input tensor A must have at least 2 dimensions.")
    if shape[-1] != shape[-2]:
        raise RuntimeError("linalg.matrix_power: A must be batches of square matrices, but they are "
                           f"{shape[-2]} by {shape[-1]} matrices")
    if out is not None and not dtypes.can_cast(A.dtype, out.dtype):
        raise RuntimeError(f"matrix_power: Expected result to be safely castable from {A.dtype.scalar_name} dtype, but "
                           f"got result with dtype {out.dtype.scalar_name}")
    result = _power(A, n)
    if out is not None and n in (0, 1):
        return copy_out(result, out)
    if out is not None and n > 1:
        check_records_nothing("matmul", (result,), (out,))
    return result if out is None else write_out(REGISTRY["mm"], result, out)


def _power(a: Tensor, n: int) -> Tensor:
    fn = layer.functions
    if n == 0:
        return a.clone().copy_(fn.eye(a._array.shape[-1], dtype=a.dtype))
    if n == 1:
        return a.clone()
    if n < 0:
        inverse = fn.linalg_inv(a)
        return inverse if n == -1 else _power(inverse, -n)
    if n == 2:
        return matmul(a, a)
    if n == 3:
        return matmul(matmul(a, a), a)
    square, product = None, None
    while n:
        square = a if square is None else matmul(square, square)
        if n & 1:
            product = square if product is None else matmul(product, square)
        n >>= 1
    assert product is not None
    return product


def matrix_power(input: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """`linalg.matrix_power`.

    >>> import flambeau as torch
    >>> torch.matrix_power(torch.tensor([[1., 1.], [0., 1.]]), 2)
    tensor([[1., 2.],
            [0., 1.]])
    """
    return linalg_matrix_power(input, n, out=out)


linalg_matmul = matmul


@repeated
def cross(input: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The cross product of vectors of length 3; along the first dimension of that length if `dim` is None.

    >>> import flambeau as torch
    >>> torch.cross(torch.tensor([1., 0., 0.]), torch.tensor([0., 1., 0.]), dim=0)
    tensor([0., 0., 1.])
    """
    if dim is None:
        if out is None:
            warnings.warn(
                "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim "
                "explicitly or simply use torch.linalg.cross.\nThe default value of dim will change to agree with "
                "that of linalg.cross in a future release.", stacklevel=user_stacklevel())
        for i, size in enumerate(_shape(input)):
            if size == 3:
                dim = i
                break
        else:
            raise RuntimeError("no dimension of size 3 in input")
    return public_function(REGISTRY["linalg_cross"])(input, other, dim=dim, out=out)


# ----- bilinear maps ---------------------------------------------------------------------


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input1ᵀ weight[k] input2 + bias[k], for every k.

    Args:
        input1: (..., in1).
        input2: (..., in2).
        weight: (out, in1, in2).
        bias: (out).

    Raises:
        RuntimeError: the shapes do not match.

    >>> import flambeau as torch
    >>> torch.nn.functional.bilinear(torch.ones(1, 2), torch.ones(1, 3), torch.ones(1, 2, 3))
    tensor([[6.]])
    """
    named = {"input1": input1, "input2": input2, "weight": weight} | ({} if bias is None else {"bias": bias})
    if len({x.dtype for x in named.values()}) > 1:
        got = ", ".join(f"{name}: {C_NAMES[x.dtype.name]}" for name, x in named.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {got}")
    s, t, w = _shape(input1), _shape(input2), _shape(weight)
    if len(s) != len(t):
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {len(s)} and {len(t)}")
    for i in range(len(s) - 1):
        if s[i] != t[i]:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {i}: got {s[i]} and {t[i]}")
    for k, size in ((1, s[-1]), (2, t[-1])):
        expected = w[wrap_dim(k, len(w))]
        if size != expected:
            raise RuntimeError(f"bilinear(): input{k} size does not match weight size: got {size} but expected "
                               f"{expected}")
    if bias is not None and not _shape(bias):
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if bias is not None and _shape(bias)[0] != w[0]:
        raise RuntimeError(f"bilinear(): bias size does not match weight size: got {_shape(bias)[0]} but expected "
                           f"{w[0]}")
    rows = prod(s[:-1])
    form = apply(REGISTRY["_trilinear"], [reshaped(input1, (rows, s[-1])), weight, reshaped(input2, (rows, t[-1]))])
    out = reshaped(form, (*s[:-1], w[0]))
    return out if bias is None else layer.functions.add(out, bias)


METHODS: dict[str, Any] = {"outer": outer, "ger": ger, "inner": inner, "kron": kron, "matrix_power": matrix_power,
                           "cross": cross}
