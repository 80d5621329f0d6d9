"""Philox 4x32-10, a counter-based generator, as a kernel: uniform numbers in [0, 1).

Element i of draw d depends on i, d and a 64-bit state alone, so it may be computed in any order, on any thread.
Programs that are compiled ahead of time draw their random numbers so. Reference: Salmon et al., "Parallel random
numbers: as easy as 1, 2, 3", SC 2011.

The plan: the number of elements, blocks per chunk, the number of the draw. The pointers: output, state.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import compilation
from ...runtime.launch import Launch, Spec
from ..llvm import kernel_entry
from ..llvm.loop_nests import I32, I64, POINTER, i64, loop, smaller, word

_MULTIPLIERS, _KEY_STEPS, _ROUNDS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10
#: 32-bit words of a block, and blocks of a chunk
_WORDS, _CHUNK = 4, 2048


def launches(out: Spec, state: Spec, draw: int) -> list[Launch]:
    """The launches that fill a dense array with uniform numbers.

    Args:
        out: the output, float32 or float64, dense.
        state: an int64.
        draw: the number of the draw, which different draws of a program differ in.
    """
    if out.dtype not in (np.float32, np.float64) or state.dtype != np.int64:
        raise TypeError(f"uniform numbers are float32 or float64, the state is int64, not {out.dtype}, {state.dtype}")
    name = out.dtype.name
    library = compilation.load(f"philox {name}", ("body",), lambda: _generate(name == "float64"), "few")
    blocks = -(-out.size // (_WORDS // (out.dtype.itemsize // 4)))
    return [Launch(library, library.symbol("body"), -(-blocks // _CHUNK), (out.size, _CHUNK, draw))]


def block(builder: ir.IRBuilder, counter: list[Any], key: list[Any]) -> list[Any]:
    """Emit the four words of a block.

    Args:
        builder: emits the instructions.
        counter: four 32-bit words.
        key: two 32-bit words.
    """
    for _ in range(_ROUNDS):
        high, low = [], []
        for multiplier, x in zip(_MULTIPLIERS, counter[::2], strict=True):
            product = builder.mul(builder.zext(x, I64), i64(multiplier))
            high.append(builder.trunc(builder.lshr(product, i64(32)), I32))
            low.append(builder.trunc(product, I32))
        counter = [builder.xor(builder.xor(high[1], counter[1]), key[0]), low[1],
                   builder.xor(builder.xor(high[0], counter[3]), key[1]), low[0]]
        key = [builder.add(k, ir.Constant(I32, step)) for k, step in zip(key, _KEY_STEPS, strict=True)]
    return counter


def _generate(wide: bool) -> str:
    module = ir.Module("philox")
    function, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
    pointers, plan, chunk = function.args
    count, per_chunk, draw = (word(b, plan, i) for i in range(3))
    out, state_at = (b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER) for i in range(2))
    state = b.load(state_at, typ=I64)
    key = [b.trunc(state, I32), b.trunc(b.lshr(state, i64(32)), I32)]
    values_per_block = _WORDS // 2 if wide else _WORDS
    blocks = b.sdiv(b.add(count, i64(values_per_block - 1)), i64(values_per_block))
    first = b.mul(chunk, per_chunk)
    kind = ir.DoubleType() if wide else ir.FloatType()
    with loop(b, first, smaller(b, b.add(first, per_chunk), blocks)) as index:
        counter = [b.trunc(index, I32), b.trunc(b.lshr(index, i64(32)), I32), b.trunc(draw, I32), ir.Constant(I32, 0)]
        words = block(b, counter, key)
        for k in range(values_per_block):
            if wide:
                bits = b.or_(b.shl(b.zext(words[2 * k], I64), i64(32)), b.zext(words[2 * k + 1], I64))
                value = b.fmul(b.uitofp(b.lshr(bits, i64(11)), kind), ir.Constant(kind, 2.0**-53))
            else:
                value = b.fmul(b.uitofp(b.lshr(words[k], ir.Constant(I32, 8)), kind), ir.Constant(kind, 2.0**-24))
            place = b.add(b.mul(index, i64(values_per_block)), i64(k))
            with b.if_then(b.icmp_signed("<", place, count)):
                b.store(value, b.gep(out, [place], source_etype=kind), align=8 if wide else 4)
    b.ret_void()
    return str(module)


__all__ = ["block", "launches"]
