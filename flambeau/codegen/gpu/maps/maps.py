"""Elementwise kernels with statements: a thread for each element, whose function may loop.

>>> import numpy as np
>>> from flambeau.runtime.launch import Spec
>>> spec = Spec.dense((100,), np.dtype(np.int64))
>>> [one] = launches("gcd", [spec], [spec, spec])
>>> one.kernel.family
'gcd'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ....runtime.launch import Spec
from ...scalar.scalar_ir import Node
from ..kernel_ir import KernelBuilder
from ..launches import Argument, DeviceLaunch, launch
from ..sorting.keys import bits_dtype
from ..walks import THREADS, Walk, element_strides
from . import float_bits, integers, polynomials
from .traced import ScalarOperations, Traced


def _incomplete_gamma(b: KernelBuilder, elements: Sequence[Node], upper: bool) -> list[Node]:
    """The regularised incomplete gamma functions of float64, by the CPU's formulas."""
    from ....kernels.special import incomplete_gamma

    operations = ScalarOperations(b)
    a, x = (Traced(each, operations) for each in elements)
    found: Any = incomplete_gamma.regularised(a, x, int(upper))  # type: ignore[arg-type]
    return [found.value]


#: functions of elements: (builder, elements, ...) -> results
_OF_ELEMENTS: dict[str, Callable[..., Sequence[Node]]] = {
    "gcd": integers.gcd, "shift_left": integers.shift_left, "shift_right": integers.shift_right,
    "polynomial": polynomials.polynomial, "incomplete_gamma": _incomplete_gamma,
}
#: functions of elements and their bits: (elements, bits) -> bits, and other results
_OF_BITS: dict[str, Callable[..., Sequence[Node]]] = {"nextafter": float_bits.nextafter, "frexp": float_bits.frexp}


def launches(name: str, outs: Sequence[Spec], ins: Sequence[Spec], **params: Any) -> list[DeviceLaunch]:
    """The launch of a function.

    Args:
        name: its name.
        outs: of one shape.
        ins: of shapes that broadcast to it.
        params: the function's.
    """
    shape = outs[0].shape
    if not prod(shape):
        return []
    b = KernelBuilder(name, THREADS)
    of_bits = name in _OF_BITS
    dtypes = [bits_dtype(each.dtype) if of_bits and each.dtype.kind in "fV" else each.dtype for each in outs]
    stored, loaded = [b.buffer(each) for each in dtypes], [b.buffer(each.dtype) for each in ins]
    raw = [b.buffer(bits_dtype(each.dtype)) for each in ins] if of_bits else []
    walk = Walk(b, shape, [element_strides(each, shape) for each in (*outs, *ins)], prod(shape))
    places = walk.at[len(outs):]
    with b.when(walk.inside):
        elements = [b.load(buffer, at) for buffer, at in zip(loaded, places, strict=True)]
        if of_bits:
            bits = [b.load(buffer, at) for buffer, at in zip(raw, places, strict=True)]
            results = _OF_BITS[name](elements, bits, np.dtype(ins[0].dtype), **params)
        else:
            results = _OF_ELEMENTS[name](b, elements, **params)
        for buffer, at, value in zip(stored, walk.at, results, strict=False):
            b.store(buffer, at, value)
    arguments = [Argument(i) for i in range(len(outs) + len(ins))]
    return [launch(b.kernel(), walk.blocks, [*arguments, *(arguments[len(outs):] if of_bits else [])])]


__all__ = ["launches"]
