"""Copies on one device between arrays of different strides, by a generated elementwise kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...codegen.gpu import elementwise
from ...codegen.gpu.launches import VECTOR, DeviceLaunch
from ...codegen.scalar.scalar_ir import variable
from ...runtime.launch import Spec
from .array import DeviceArray
from .runtime import Place

#: bytes of an element -> the dtype whose elements are copied in its place
_BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def copy(runtime: Any, target: DeviceArray, source: DeviceArray) -> None:
    """Start a copy of the bits of an array to one of the same shape and dtype; within `launch`."""
    size = source.dtype.itemsize
    shape, strides = source.shape, [(target.strides, source.strides)]
    bits = _BITS.get(size)
    if bits is None:  # complex128: two words
        bits, shape, (a, b) = _BITS[8], (*shape, size // 8), strides[0]
        strides = [((*a, 8), (*b, 8))]
    (to, of), = strides
    launches = elementwise.launches([variable(0, bits)], [Spec(shape, to, bits)], [Spec(shape, of, bits)])
    start(runtime, launches, [(each.memory, each.byte_offset) for each in (target, source)])


def start(runtime: Any, launches: Sequence[DeviceLaunch], places: Sequence[Place], device: int = 0) -> None:
    """Start launches on operands; within `Runtime.launch`.

    Args:
        places: of the operands' first elements: outputs, inputs.
        device: on which scratch memory is.
    """
    scratch = max((each.scratch for each in launches), default=0)
    if scratch:
        places = [*places, (runtime.allocate(device, scratch), 0)]
    aligned = all((memory.offset + offset) % VECTOR == 0 for memory, offset in places)
    for each in launches:
        chosen = each if aligned or each.unaligned is None else each.unaligned
        runtime.run_kernel(chosen.kernel, chosen.grid, [
            (places[x.operand][0], places[x.operand][1] + x.offset) for x in chosen.arguments], chosen.scalars)


__all__ = ["copy", "start"]
