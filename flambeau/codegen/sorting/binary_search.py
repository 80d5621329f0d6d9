"""Binary search as a kernel: the position among sorted elements at which each value would be inserted.

Plan: elements of a sequence, values, values of a chunk, values of a sequence, bytes from sequence to sequence.

>>> import numpy as np
>>> from flambeau import codegen
>>> from flambeau.runtime import launch; from flambeau.codegen.sorting import binary_search
>>> sequence, values, places = np.float32([1, 3, 5]), np.float32([3, 6]), np.int64([1, 3])
>>> if codegen.available():
...     arrays = [places, sequence, values]
...     launch.run(binary_search.launches(*map(launch.Spec.of, arrays), right=False), arrays)
>>> print(places)
[1 3]
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir

from ...runtime import compilation
from ...runtime.launch import Launch, Spec
from .. import iteration_space
from ..llvm import kernel_entry
from ..llvm.loop_nests import I64, POINTER, at, i64, local, loop, smaller, while_loop, word
from ..llvm.lowering import memory_type
from .merge_sort import DTYPES

#: comparisons that one thread computes in about 10 µs
GRAIN = 1 << 13


def launches(places: Spec, sequences: Spec, values: Spec, *, right: bool) -> list[Launch]:
    """The launches that search each value in its row's sequence, or all values in one sequence.

    NaN is inserted at the end, and so are values that are compared with a NaN of the sequence.

    Args:
        places: output, int64, contiguous, of the shape of the values.
        sequences: (n,), or (rows, n), contiguous, sorted along the last dimension.
        values: (count,), or (rows, count), contiguous, of the dtype of the sequences.
        right: after equal elements instead of before them.

    Returns:
        Launches over the pointers of these three.
    """
    if values.dtype != sequences.dtype or values.dtype.name not in DTYPES:
        raise TypeError(f"cannot search elements of dtypes {sequences.dtype} and {values.dtype}")
    n, size = sequences.shape[-1], values.dtype.itemsize
    if not values.size:
        return []
    chunks, block = iteration_space.blocks(values.size, max(1, GRAIN // max(1, n.bit_length())), 1)
    of_row, stride = (values.shape[-1], n * size) if len(sequences.shape) > 1 else (values.size, 0)
    library = compilation.load(f"binary search {values.dtype} {right}", ("body",),
                               lambda: _generate(values.dtype, right), "few")
    return [Launch(library, library.symbol("body"), chunks, (n, values.size, block, of_row, stride))]


def _generate(dtype: np.dtype, right: bool) -> str:
    module = ir.Module("binary_search")
    body, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
    pointers, plan, chunk = body.args
    places, sequences, values = (b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER)
                                 for i in range(3))
    n, total, block, of_row, stride = (word(b, plan, i) for i in range(5))
    kind, size = memory_type(dtype), i64(dtype.itemsize)
    low, high = local(b, I64), local(b, I64)
    first = b.mul(chunk, block)
    with loop(b, first, smaller(b, b.add(first, block), total)) as i:
        value = b.load(at(b, values, b.mul(i, size)), typ=kind, align=1)
        sequence = at(b, sequences, b.mul(b.sdiv(i, of_row), stride))
        b.store(i64(0), low)
        b.store(n, high)
        with while_loop(b, lambda: b.icmp_signed("<", b.load(low, typ=I64), b.load(high, typ=I64))):
            bottom, top = b.load(low, typ=I64), b.load(high, typ=I64)
            middle = b.lshr(b.add(bottom, top), i64(1))
            probe = b.load(at(b, sequence, b.mul(middle, size)), typ=kind, align=1)
            compare = ">" if right else ">="
            if dtype.kind == "f":
                reaches = b.fcmp_ordered(compare, probe, value)
            else:
                reaches = (b.icmp_signed if dtype.kind == "i" else b.icmp_unsigned)(compare, probe, value)
            b.store(b.select(reaches, bottom, b.add(middle, i64(1))), low)
            b.store(b.select(reaches, middle, top), high)
        b.store(b.load(low, typ=I64), b.gep(places, [i], source_etype=I64))
    b.ret_void()
    return str(module)


__all__ = ["launches"]
