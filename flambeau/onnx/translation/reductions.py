"""Reductions, scans, sorting, products of matrices, creation."""

from __future__ import annotations

from typing import Any

import numpy as np

import flambeau as torch

from ...fx.node import Node
from .converter import Converter, translates


def axes_of(c: Converter, dim: Any) -> Any:
    """Dimensions of a reduction as an input; None stands for all."""
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return None
    return c.const([int(d) for d in dim] if isinstance(dim, (list, tuple)) else [int(dim)])


def _reduction(kind: str) -> Any:
    def run(c: Converter, x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        return c.op(kind, c.x(x, c.result.dtype), axes_of(c, dim), keepdims=int(keepdim))

    return run


translates("aten.sum")(_reduction("ReduceSum"))
translates("aten.mean")(_reduction("ReduceMean"))
translates("aten.amax.default")(_reduction("ReduceMax"))
translates("aten.amin.default")(_reduction("ReduceMin"))
translates("aten.prod.default")(lambda c, x, dtype=None: c.op("ReduceProd", c.x(x, c.result.dtype), keepdims=0))
translates("aten.prod.dim_int")(_reduction("ReduceProd"))
translates("aten.logsumexp.default")(_reduction("ReduceLogSumExp"))
translates("aten.max.default")(lambda c, x: c.op("ReduceMax", c.x(x), keepdims=0))
translates("aten.min.default")(lambda c, x: c.op("ReduceMin", c.x(x), keepdims=0))


def _extreme(value: str, index: str) -> Any:
    def run(c: Converter, x: Any, dim: int, keepdim: bool = False) -> Any:
        return [c.op(value, c.x(x), c.const([dim]), keepdims=int(keepdim)),
                c.op(index, c.x(x), axis=dim, keepdims=int(keepdim))]

    return run


translates("aten.max.dim")(_extreme("ReduceMax", "ArgMax"))
translates("aten.min.dim")(_extreme("ReduceMin", "ArgMin"))


def _index_of(kind: str) -> Any:
    def run(c: Converter, x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim is None:
            return c.op("Reshape", c.op(kind, c.op("Reshape", c.x(x), c.const([-1])), axis=0, keepdims=0), c.const(
                [1] * c.rank(x) if keepdim else []))
        return c.op(kind, c.x(x), axis=dim, keepdims=int(keepdim))

    return run


translates("aten.argmax.default")(_index_of("ArgMax"))
translates("aten.argmin.default")(_index_of("ArgMin"))


def _truth(kind: str) -> Any:
    def run(c: Converter, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        number = c.op("Cast", c.x(x, torch.bool), to=c.type_of(torch.int32))
        return c.op("Cast", c.op(kind, number, axes_of(c, dim), keepdims=int(keepdim)), to=c.type_of(torch.bool))

    return run


translates("aten.any")(_truth("ReduceMax"))
translates("aten.all")(_truth("ReduceMin"))


def _variance(root: bool, both: bool = False) -> Any:
    def run(c: Converter, x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
            correction: Any = None) -> Any:
        which = c.node.target._overloadname
        if which == "default":
            dim, unbiased = None, True if dim is None else dim
        if which == "correction":
            correction = 1 if correction is None else correction
        else:
            correction = 1 if unbiased is None or unbiased else 0
        meta = c.result[0] if both else c.result
        dtype, name = meta.dtype, c.x(x)
        axes = axes_of(c, dim)
        mean = c.op("ReduceMean", name, axes, keepdims=1)
        deviation = c.op("Sub", name, mean)
        total = c.op("ReduceSum", c.op("Mul", deviation, deviation), axes, keepdims=int(keepdim))
        sizes = c.sizes(x) if axes is None else c.op("Gather", c.sizes(x), axes)
        count = c.op("Cast", c.op("ReduceProd", sizes, keepdims=0), to=c.type_of(dtype))
        divisor = c.op("Max", c.op("Sub", count, c.const(correction, dtype)), c.const(0, dtype))
        out = c.op("Div", total, divisor)
        out = c.op("Sqrt", out) if root else out
        return [out, c.op("ReduceMean", name, axes, keepdims=int(keepdim))] if both else out

    return run


translates("aten.var")(_variance(False))
translates("aten.std")(_variance(True))
translates("aten.var_mean")(_variance(False, True))
translates("aten.std_mean")(_variance(True, True))


@translates("aten.linalg_vector_norm.default")
def _vector_norm(c: Converter, x: Any, order: Any = 2, dim: Any = None, keepdim: bool = False,
                 dtype: Any = None) -> Any:
    name, axes, keep = c.x(x, c.result.dtype), axes_of(c, dim), int(keepdim)
    if order in (1, 2):
        return c.op("ReduceL2" if order == 2 else "ReduceL1", name, axes, keepdims=keep)
    size = c.op("Abs", name)
    if order in (float("inf"), float("-inf")):
        return c.op("ReduceMax" if order > 0 else "ReduceMin", size, axes, keepdims=keep)
    if order == 0:
        return c.op("ReduceSum", c.op("Sign", size), axes, keepdims=keep)
    power = c.op("ReduceSum", c.op("Pow", size, c.const(order, c.result.dtype)), axes, keepdims=keep)
    return c.op("Pow", power, c.const(1 / order, c.result.dtype))


@translates("aten.linalg_norm.default")
def _norm(c: Converter, x: Any, order: Any = None, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if order is not None and (dim is None or (not isinstance(dim, int) and len(dim) == 2)):
        raise c.fail("norms of matrices")
    return _vector_norm(c, x, 2 if order is None else order, dim, keepdim, dtype)


@translates("aten.cumsum.default")
def _cumsum(c: Converter, x: Any, dim: int, dtype: Any = None) -> Any:
    if not c.rank(x):
        return c.op("Identity", c.x(x, c.result.dtype))
    return c.op("CumSum", c.x(x, c.result.dtype), c.const(dim))


@translates("aten.cumprod.default")
def _cumprod(c: Converter, x: Any, dim: int, dtype: Any = None) -> Any:
    """By doubling: after k steps an element is the product of the last 2^k ones."""
    name = c.x(x, c.result.dtype)
    if not c.rank(x):
        return c.op("Identity", name)
    count, step, axis = c.fixed(x, dim), 1, c.const([dim])
    while step < count:
        rest = c.op("Slice", name, c.const([step]), c.const([count]), axis)
        first = c.op("Slice", name, c.const([0]), c.const([step]), axis)
        before = c.op("Slice", name, c.const([0]), c.const([count - step]), axis)
        name, step = c.op("Concat", first, c.op("Mul", rest, before), axis=dim), 2 * step
    return name


@translates("aten.topk.default")
def _topk(c: Converter, x: Any, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    return c.op("TopK", c.x(x), c.ints(k), outputs=2, axis=dim, largest=int(largest), sorted=int(sorted))


@translates("aten.sort", "aten.argsort")
def _sort(c: Converter, x: Any, dim: int = -1, descending: bool = False, *, stable: Any = None,
          **named: Any) -> Any:
    dim, descending = named.get("dim", dim), named.get("descending", descending)
    count = c.dim_of(c.x(x), dim % c.rank(x))
    values, indices = c.op("TopK", c.x(x), count, outputs=2, axis=dim, largest=int(descending), sorted=1)
    return indices if c.node.target.overloadpacket.__name__ == "argsort" else [values, indices]


@translates("aten.searchsorted.Tensor")
def _searchsorted(c: Converter, boundaries: Any, x: Any, *, out_int32: bool = False, right: bool = False,
                  side: Any = None, sorter: Any = None) -> Any:
    if sorter is not None or c.rank(boundaries) != 1:
        raise c.fail("a sorter, or several sequences of boundaries")
    below = c.op("LessOrEqual" if right or side == "right" else "Less", c.x(boundaries), c.op(
        "Unsqueeze", c.x(x, c.dtype(boundaries)), c.const([-1])))
    return c.op("ReduceSum", c.op("Cast", below, to=c.type_of(c.result.dtype)), c.const([-1]), keepdims=0)


# ----- products -----

translates("aten.mm.default", "aten.bmm.default", "aten.matmul.default", "aten.mv.default", "aten.dot.default")(
    lambda c, x, y: c.op("MatMul", c.x(x), c.x(y)))


@translates("aten.addmm.default", "aten.baddbmm.default", "aten.addmv.default")
def _addmm(c: Converter, bias: Any, x: Any, y: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    dtype = c.result.dtype
    product = c.op("MatMul", c.x(x), c.x(y))
    product = product if alpha == 1 else c.op("Mul", product, c.const(alpha, dtype))
    added = c.x(bias) if beta == 1 else c.op("Mul", c.x(bias), c.const(beta, dtype))
    return c.op("Add", product, added)


@translates("aten.linear.default")
def _linear(c: Converter, x: Any, weight: Any, bias: Any = None) -> Any:
    if c.rank(x) == 2 and c.rank(weight) == 2:
        return c.op("Gemm", c.x(x), c.x(weight), c.x(bias), transB=1)
    transposed = c.op("Transpose", c.x(weight), perm=[1, 0]) if c.rank(weight) == 2 else c.x(weight)
    out = c.op("MatMul", c.x(x), transposed)
    return out if bias is None else c.op("Add", out, c.x(bias))


@translates("aten.einsum.default")
def _einsum(c: Converter, equation: str, tensors: Any, path: Any = None) -> Any:
    return c.op("Einsum", *map(c.x, tensors), equation=equation)


@translates("aten.outer.default", "aten.ger.default")
def _outer(c: Converter, x: Any, y: Any) -> Any:
    dtype = c.result.dtype
    return c.op("Mul", c.op("Reshape", c.x(x, dtype), c.const([-1, 1])), c.x(y, dtype))


@translates("aten.tensordot.default")
def _tensordot(c: Converter, x: Any, y: Any, left: Any, right: Any) -> Any:
    m, n = c.rank(x), c.rank(y)
    letters = "abcdefghijklmnopqrstuvwxyz"
    first, second = list(letters[:m]), list(letters[m:m + n])
    for i, j in zip(left, right, strict=True):
        second[j % n] = first[i % m]
    contracted = {first[i % m] for i in left}
    out = [x for x in (*first, *second) if x not in contracted]
    return c.op("Einsum", c.x(x), c.x(y), equation=f"{''.join(first)},{''.join(second)}->{''.join(out)}")


@translates("aten.cdist.default", "aten._cdist_forward.default")
def _cdist(c: Converter, x: Any, y: Any, p: float = 2.0, compute_mode: Any = None) -> Any:
    if p not in (1, 2):
        raise c.fail(f"p = {p}")
    difference = c.op("Sub", c.op("Unsqueeze", c.x(x), c.const([-2])), c.op("Unsqueeze", c.x(y), c.const([-3])))
    return c.op("ReduceL2" if p == 2 else "ReduceL1", difference, c.const([-1]), keepdims=0)


# ----- creation -----

def _filled(value: Any) -> Any:
    def run(c: Converter, size: Any, *rest: Any, **options: Any) -> Any:
        number = rest[0] if value is None else value
        if isinstance(number, Node):
            return c.op("Expand", c.x(number, c.result.dtype), c.ints(size))
        return c.op("Expand", c.const(number, c.result.dtype), c.ints(size))

    return run


translates("aten.zeros.default", "aten.empty.memory_format")(_filled(0))
translates("aten.ones.default")(_filled(1))
translates("aten.full.default")(_filled(None))


def _like(value: Any, sized: bool = False) -> Any:
    def run(c: Converter, x: Any, *rest: Any, **options: Any) -> Any:
        rest = (*rest, *(options[key] for key in ("fill_value",) if key in options))
        size = c.ints(rest[0]) if sized else c.sizes(x)
        number = rest[-1] if value is None else value
        return c.op("Expand", c.x(number, c.result.dtype), size)

    return run


translates("aten.zeros_like.default", "aten.empty_like.default")(_like(0))
translates("aten.ones_like.default")(_like(1))
translates("aten.full_like.default")(_like(None))
translates("aten.new_zeros.default", "aten.new_empty.default")(_like(0, True))
translates("aten.new_ones.default")(_like(1, True))
translates("aten.new_full.default")(_like(None, True))
translates("aten.scalar_tensor.default")(lambda c, value, **options: c.x(value, c.result.dtype))


@translates("aten.arange")
def _arange(c: Converter, *bounds: Any, **options: Any) -> Any:
    dtype = c.result.dtype
    start, end, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1) if len(bounds) == 2 else bounds
    if not any(isinstance(v, Node) for v in (start, end, step)):
        return c.const(np.arange(start, end, step), dtype)
    return c.op("Range", c.x(start, dtype), c.x(end, dtype), c.x(step, dtype))


@translates("aten.linspace.default")
def _linspace(c: Converter, start: Any, end: Any, steps: int, **options: Any) -> Any:
    return c.const(np.linspace(start, end, steps), c.result.dtype)


@translates("aten.hann_window", "aten.hamming_window", "aten.blackman_window", "aten.bartlett_window",
            "aten.kaiser_window", "aten.logspace.default", "aten.tril_indices.default", "aten.triu_indices.default")
def _computed_now(c: Converter, *args: Any, **options: Any) -> Any:
    if any(isinstance(each, Node) for each in args):
        raise c.fail("a dynamic size")
    return c.const(c.node.target(*args, **options).detach().numpy())


@translates("aten.eye")
def _eye(c: Converter, n: Any, m: Any = None, **options: Any) -> Any:
    m = n if m is None else m
    if isinstance(n, Node) or isinstance(m, Node):
        raise c.fail("a dynamic size")
    return c.const(np.eye(n, m), c.result.dtype)


@translates("aten.sym_size.int")
def _sym_size(c: Converter, x: Any, dim: int) -> Any:
    return c.op("Reshape", c.dim_of(c.x(x), dim % c.rank(x)), c.const([]))


def _random(kind: str) -> Any:
    def run(c: Converter, size: Any, **options: Any) -> Any:
        template = c.op("Expand", c.const(0, c.result.dtype), c.sizes(size) if isinstance(size, Node) else c.ints(size))
        return c.op(kind, template)

    return run


translates("aten.rand.default", "aten.rand_like.default")(_random("RandomUniformLike"))
translates("aten.randn.default", "aten.randn_like.default")(_random("RandomNormalLike"))
