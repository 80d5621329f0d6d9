"""Kernels that follow indices, as they stand in graphs: every kernel's second output says what was out of range.

Graphs ask for indices in range beforehand (`Namespace.requires_range`), so nobody looks at it.
"""

from __future__ import annotations

from ...runtime.launch import Launch, Spec
from ..graph.extern_kernels import ExternKernel
from ..graph.value import INT64, Unsupported, Value


def _take(outputs: list[Spec], inputs: list[Spec], dim: int) -> list[Launch]:
    from ...codegen.indexing import indexing

    out, flag = outputs
    return indexing.take(out, flag, inputs[0], inputs[1], dim)


def _put(outputs: list[Spec], inputs: list[Spec], dim: int) -> list[Launch]:
    from ...codegen.indexing import indexing

    out, flag = outputs
    source, index = inputs
    return indexing.put(out, flag, source, index, dim)


def taken(x: Value, index: Value, shape: tuple[int, ...], dim: int) -> Value:
    """out[p] = x[p, but index[p] along dim]: of this shape; the index broadcasts to it.

    Raises:
        Unsupported: no kernel moves elements of this size.
    """
    if x.dtype.itemsize > 8:
        raise Unsupported(f"elements of {x.dtype}")
    return x.graph.extern(ExternKernel("take", _take, {"dim": dim}), [x, index], [(shape, x.dtype), ((2,), INT64)])[0]


def added(source: Value, index: Value, shape: tuple[int, ...], dim: int) -> Value:
    """Zeros of this shape with out[p, but index[p] along dim] += source[p].

    Raises:
        Unsupported: no kernel adds complex numbers so.
    """
    if source.dtype.kind == "c":
        raise Unsupported("complex numbers")
    return source.graph.extern(ExternKernel("put", _put, {"dim": dim}), [source, index],
                              [(shape, source.dtype), ((2,), INT64)])[0]
