"""Gather and scatter kernels as extern values.

Each kernel's second output flags indices out of range. It is not read: graphs have a data guard on the range of indices
(`Namespace.requires_range`).
"""

from __future__ import annotations

from ...runtime.launch import Launch, Spec
from ..graph.extern_kernels import ExternKernel
from ..graph.value import INT64, Unsupported, Value


def _take_launches(outputs: list[Spec], inputs: list[Spec], dim: int) -> list[Launch]:
    from ...codegen.indexing import indexing

    out, flag = outputs
    return indexing.take(out, flag, inputs[0], inputs[1], dim)


def _put_launches(outputs: list[Spec], inputs: list[Spec], dim: int, op: str = "add") -> list[Launch]:
    from ...codegen.indexing import indexing

    out, flag = outputs
    source, index = inputs
    return indexing.put(out, flag, source, index, dim, op)


def take(x: Value, index: Value, shape: tuple[int, ...], dim: int) -> Value:
    """Gather along a dimension: out[p] = x[p with p[dim] = index[p]]; the index broadcasts to the result's shape.

    Raises:
        Unsupported: no kernel for elements of this size.
    """
    if x.dtype.itemsize > 8 and not x.graph.takes_pairs:
        raise Unsupported(f"elements of {x.dtype}")
    kernel = ExternKernel("take", _take_launches, {"dim": dim})
    return x.graph.extern(kernel, [x, index], [(shape, x.dtype), ((2,), INT64)])[0]


def scatter_add(source: Value, index: Value, shape: tuple[int, ...], dim: int) -> Value:
    """Scatter-add into zeros of this shape: out[p with p[dim] = index[p]] += source[p].

    Raises:
        Unsupported: complex numbers.
    """
    if source.dtype.kind == "c" and not source.graph.takes_pairs:
        raise Unsupported("complex numbers")
    kernel = ExternKernel("put", _put_launches, {"dim": dim})
    return source.graph.extern(kernel, [source, index], [(shape, source.dtype), ((2,), INT64)])[0]


def scatter_set(source: Value, index: Value, shape: tuple[int, ...], dim: int) -> Value:
    """Scatter into zeros of this shape: out[p with p[dim] = index[p]] = source[p]; of several, the last one.

    Raises:
        Unsupported: no kernel for elements of this size.
    """
    if source.dtype.itemsize > 8 and not source.graph.takes_pairs:
        raise Unsupported(f"elements of {source.dtype}")
    kernel = ExternKernel("put", _put_launches, {"dim": dim, "op": "set"})
    return source.graph.extern(kernel, [source, index], [(shape, source.dtype), ((2,), INT64)])[0]
