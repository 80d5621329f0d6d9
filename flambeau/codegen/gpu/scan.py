"""Scans along one dimension, a thread for each line: cumulative sums, products, extrema, linear recurrences.

A thread walks its line step by step, so that results are those of the CPU bit for bit. Few long lines leave most of a
GPU idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...runtime.launch import Spec
from ..scalar.scalar_ir import cast, variable
from ..scan.scan import Scan
from .coordinates import INT64
from .kernel_ir import KernelBuilder, substitute
from .launches import DeviceLaunch, launch
from .walks import THREADS, Walk, element_strides


def launches(scan: Scan, outs: Sequence[Spec], ins: Sequence[Spec], dim: int, reverse: bool = False
             ) -> list[DeviceLaunch]:
    """The launch of a scan of arrays of one shape; outputs must not alias inputs.

    Args:
        scan: the operation.
        outs: one for each state.
        ins: the elements.
        dim: the scanned dimension, non-negative.
        reverse: whether to scan from its end.
    """
    shape = outs[0].shape
    if not prod(shape):
        return []
    b = KernelBuilder("scan", THREADS)
    stored, loaded = ([b.buffer(each.dtype) for each in specs] for specs in (outs, ins))
    strides = [element_strides(each, shape) for each in (*outs, *ins)]
    lines = [1 if d == dim else n for d, n in enumerate(shape)]
    walk = Walk(b, lines, [[0 if d == dim else s for d, s in enumerate(each)] for each in strides], prod(shape))
    along, n = [each[dim] for each in strides], shape[dim]
    with b.when(walk.inside):
        states = [b.local(each) for each in scan.initial]
        with b.loop(walk.zero, walk.number(n), walk.number(1)) as step:
            place = walk.number(n - 1) - step if reverse else step
            at = [base + place * stride for base, stride in zip(walk.at, along, strict=True)]
            known = {variable(i, local.dtype): b.get(local) for i, local in enumerate(states)}
            for i, (buffer, index) in enumerate(zip(loaded, at[len(outs):], strict=True), len(states)):
                known[variable(i, buffer.dtype)] = b.load(buffer, index)
            known[variable(len(states) + len(ins), INT64)] = cast(step, INT64)
            new = [substitute(each, known) for each in scan.steps]
            for local, value in zip(states, new, strict=True):
                b.set(local, value)
            for buffer, index, value in zip(stored, at, new, strict=False):
                b.store(buffer, index, value)
    return [launch(b.kernel(), walk.blocks)]


__all__ = ["launches"]
