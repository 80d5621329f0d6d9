"""Generated kernels and matrix products on a fake device: the emulator, and NumPy, on memory of the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...codegen.gpu.emulation import emulator
from ...codegen.gpu.kernel_ir import Kernel
from ...codegen.gpu.statements import Buffer
from ...dtypes import BFLOAT16, NARROW, cast, widen
from .allocator import DeviceMemory
from .runtime import AddressTable, Place, Product


def memory_of(memory: DeviceMemory) -> np.ndarray:
    """The bytes of a block."""
    if memory.segment is None:
        return np.empty(0, np.uint8)
    bytes_: np.ndarray = memory.segment.data[memory.offset:memory.offset + memory.nbytes]
    return bytes_


def elements_at(place: Place, dtype: np.dtype) -> emulator.View:
    """The elements of a block, and the place of the first one of a buffer."""
    memory, offset = place
    first = offset % dtype.itemsize
    data = memory_of(memory)[first:]
    return emulator.View(data[:data.size // dtype.itemsize * dtype.itemsize].view(dtype), offset // dtype.itemsize)


def run_kernel(kernel: Kernel, grid: tuple[int, int, int], places: Sequence[Place | AddressTable],
               scalars: Sequence[Any], check: bool) -> None:
    """Run a kernel on the emulator.

    Args:
        kernel, grid, places, scalars: as for `Runtime.run_kernel`.
        check: whether to look for races.
    """
    arguments: list[Any] = []
    remaining, numbers = iter(places), iter(scalars)
    for parameter in kernel.parameters:
        if not isinstance(parameter, Buffer):
            arguments.append(next(numbers))
            continue
        place = next(remaining)
        if isinstance(place, AddressTable):
            views = [elements_at(each, place.dtype) for each in place.places]
            arguments.append(emulator.Table([view.memory[view.origin:] for view in views]))
        else:
            arguments.append(elements_at(place, parameter.dtype))
    emulator.run(kernel, grid, arguments, check)


def multiply(product: Product) -> None:
    """Compute a batch of products in the precision of the elements, float32 for narrow ones."""
    made = product.dtype if product.out is None else product.out

    def matrices(place: Place, rows: int, columns: int, row: int, step: int, transposed: bool, dtype: np.dtype
                 ) -> np.ndarray:
        view = elements_at(place, dtype)
        size = dtype.itemsize
        strides = (step * size, size, row * size) if transposed else (step * size, row * size, size)
        return np.lib.stride_tricks.as_strided(view.memory[view.origin:], (product.batch, rows, columns), strides)

    m, n, k = product.m, product.n, product.k
    a = matrices(product.a, m, k, product.rows[0], product.steps[0], product.transposed[0], product.dtype)
    b = matrices(product.b, k, n, product.rows[1], product.steps[1], product.transposed[1], product.dtype)
    c = matrices(product.c, m, n, product.rows[2], product.steps[2], False, made)
    if product.dtype in NARROW:
        a, b = widen(np.ascontiguousarray(a)), widen(np.ascontiguousarray(b))
    result = np.matmul(a, b)
    if product.alpha != 1:
        result = result * result.dtype.type(product.alpha)
    if product.beta:
        old = widen(np.ascontiguousarray(c)) if made in NARROW else c
        result = result + result.dtype.type(product.beta) * old
    if product.bias is not None:
        view = elements_at(product.bias, made)
        bias = view.memory[view.origin:view.origin + n]
        result = result + (widen(bias) if made in NARROW else bias)
    c[...] = cast(result, made) if made == BFLOAT16 else result


__all__ = ["elements_at", "memory_of", "multiply", "run_kernel"]
