"""Elementwise kernels: fused expressions over strided and broadcast arrays, one pass over memory.

A thread computes as many neighbouring elements as fit into 16 bytes, if all operands are contiguous or constant along
the innermost dimension; else one.

>>> import numpy as np
>>> from flambeau.codegen.scalar.scalar_ir import exp, variable
>>> from flambeau.runtime.launch import Spec
>>> spec = Spec.dense((1024, 1024), np.dtype(np.float32))
>>> [one] = launches([exp(variable(0, "float32"))], [spec], [spec])
>>> one.grid, one.kernel.threads
((1024, 1, 1), 256)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ...runtime.launch import Spec
from .. import iteration_space
from ..scalar.scalar_ir import Node, cast, variable
from . import coordinates
from .coordinates import INT32, count_blocks, index_dtype, offset
from .kernel_ir import Kernel, KernelBuilder, substitute
from .launches import VECTOR, DeviceLaunch, launch

THREADS = 256


def launches(nodes: Sequence[Node], outs: Sequence[Spec], ins: Sequence[Spec]) -> list[DeviceLaunch]:
    """The launch that computes expressions for every element.

    Args:
        nodes: one for each output; variable i is an element of input i.
        outs: of one shape. An output may alias an input of the same layout.
        ins: of shapes that broadcast to the outputs'.

    Raises:
        ValueError: shapes do not match.
    """
    return list(_launches(tuple(nodes), tuple(outs), tuple(ins)))


@lru_cache(4096)
def _launches(nodes: tuple[Node, ...], outs: tuple[Spec, ...], ins: tuple[Spec, ...]) -> tuple[DeviceLaunch, ...]:
    shape = outs[0].shape
    if any(each.shape != shape for each in outs):
        raise ValueError(f"outputs of shapes {', '.join(str(each.shape) for each in outs)}")
    if not outs[0].size:
        return ()
    specs = (*outs, *ins)
    strides = [[stride // each.dtype.itemsize for stride in iteration_space.checked_broadcast_strides(
        each.shape, each.strides, shape)] for each in specs]
    order = iteration_space.memory_order(shape, strides)
    dims = iteration_space.collapse(shape, strides, order)
    if not dims.extents:
        dims = iteration_space.Dims([1], [[0] for _ in specs])
    width = _vector_width(dims, [each.dtype.itemsize for each in specs])
    made = launch(_kernel(nodes, outs, ins, dims, width), count_blocks(outs[0].size, THREADS * width))
    if width > 1:
        made = made._replace(unaligned=launch(_kernel(nodes, outs, ins, dims, 1), count_blocks(outs[0].size, THREADS)))
    return (made,)


def _vector_width(dims: iteration_space.Dims, sizes: Sequence[int]) -> int:
    """The number of neighbours that a thread computes."""
    width = VECTOR // max(sizes)
    while width > 1 and (dims.extents[0] % width or any(
            each[0] not in (0, 1) or (each[0] and any(stride % width for stride in each[1:]))
            for each in dims.strides)):
        width //= 2
    return width


def _kernel(nodes: tuple[Node, ...], outs: tuple[Spec, ...], ins: tuple[Spec, ...], dims: iteration_space.Dims,
            width: int) -> Kernel:
    b = KernelBuilder("elementwise", THREADS)
    stored, loaded = ([b.buffer(each.dtype) for each in specs] for specs in (outs, ins))
    total = iteration_space.numel(dims.extents)
    dtype = index_dtype(dims.extents, dims.strides, total)
    block, thread = (each if dtype == INT32 else cast(each, dtype) for each in (b.block, b.thread))
    linear = block * (THREADS * width) + thread * width
    with b.when(linear < total):
        places = coordinates.coordinates(linear, dims.extents)
        zero = coordinates.constant(0, dtype)
        at = [offset(places, each, zero) for each in dims.strides]
        elements: list[list[Node]] = []
        for buffer, index, each in zip(loaded, at[len(outs):], dims.strides[len(outs):], strict=True):
            whole = b.load_vector(buffer, index, width) if each[0] else [b.load(buffer, index)] * width
            elements.append(whole)
        known = [{variable(i, x.dtype): x for i, x in enumerate(each)} for each in (
            [row[k] for row in elements] for k in range(width))]
        results = [[substitute(node, each) for each in known] for node in nodes]
        for buffer, index, values in zip(stored, at, results, strict=False):
            b.store_vector(buffer, index, values)
    return b.kernel()


__all__ = ["THREADS", "launches"]
