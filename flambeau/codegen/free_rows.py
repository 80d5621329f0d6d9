"""Known calls whose first extents are free: one entry serves any number of rows.

The tensors of such a call have common first extents, of which only the product counts: the number of rows. The plans of
its launches have words that follow from that number, which are set before the launches run. Whoever sets them
holds the interpreter's lock, and launches of such entries do not release it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from .llvm import kernel_entry
from .llvm.loop_nests import I64, POINTER, as_opaque_pointer, at, i64, local, loop, word

#: words of a call's state, after the number of tensors and whether one requires gradients: the number of rows, and the
#: address of the free extents, 0 where none were met
ROW_COUNT, EXTENTS, STATE = 2, 3, 4
#: words of a description: the least and the greatest number of rows, the number of words to set; of each its address,
#: what is added to the number of rows, by how many bits that is shifted to the right, and by what the quotient is
#: multiplied and what is added to make the word
LEAST, MOST, COUNT, FIRST = range(4)
EACH = 5
#: the most dimensions of an array
RANK = 64


def _begin(module: ir.Module, name: str, type_: ir.FunctionType) -> tuple[ir.Function, ir.IRBuilder]:
    """Begin a function that is not inlined: calls without free extents do without its instructions."""
    function, b = kernel_entry.begin(module, name, type_)
    function.linkage = "internal"
    function.attributes.add("noinline")
    return function, b


def emit_match(module: ir.Module) -> ir.Function:
    """`match_rows(words, rank, shape, strides, state)`: the words of an argument; 0 where it differs.

    A tensor has to have these rows (`known_calls.ROWS`), and as many as those before; their number is noted.
    """
    function, b = _begin(module, "match_rows", ir.FunctionType(I64, [POINTER, I64, POINTER, POINTER, POINTER]))
    words, rank, shape, strides, state = function.args
    free = word(b, words, 3)
    rest = b.sub(rank, free)

    def require(condition: Any) -> None:
        with b.if_then(b.not_(condition), likely=False):
            b.ret(i64(0))

    with loop(b, i64(0), rest) as d:
        after, place = b.add(d, i64(5)), b.add(free, d)
        require(b.icmp_signed("==", word(b, shape, place), word(b, words, after)))
        require(b.icmp_signed("==", word(b, strides, place), word(b, words, b.add(after, rest))))
    stride, product = (as_opaque_pointer(b, local(b, I64)) for _ in range(2))
    b.store(word(b, words, 4), stride)
    b.store(i64(1), product)
    with loop(b, i64(0), free) as i:
        d = b.sub(b.sub(free, i), i64(1))
        extent, expected = word(b, shape, d), b.load(stride, typ=I64)
        require(b.icmp_signed("==", word(b, strides, d), expected))
        b.store(b.mul(b.load(product, typ=I64), extent), product)
        b.store(b.mul(expected, extent), stride)
    others = b.load(at(b, state, 8 * EXTENTS), typ=POINTER)
    with b.if_else(b.icmp_signed("==", b.ptrtoint(others, I64), i64(0))) as (first, again):
        with first:
            b.store(shape, at(b, state, 8 * EXTENTS))
            b.store(b.load(product, typ=I64), at(b, state, 8 * ROW_COUNT))
        with again, loop(b, i64(0), free) as d:
            require(b.icmp_signed("==", word(b, shape, d), word(b, others, d)))
    b.ret(b.add(b.mul(rest, i64(2)), i64(5)))
    return function


def fits(b: ir.IRBuilder, description: Any, state: Any) -> Any:
    """Whether an entry serves this number of rows."""
    rows = word(b, state, ROW_COUNT)
    return b.and_(b.icmp_signed(">=", rows, word(b, description, LEAST)),
                  b.icmp_signed("<=", rows, word(b, description, MOST)))


def emit_set_words(module: ir.Module) -> ir.Function:
    """`set_words(description, state)`: set the words that depend on the number of rows."""
    function, b = _begin(module, "set_words", ir.FunctionType(ir.VoidType(), [POINTER, POINTER]))
    description, state = function.args
    rows = word(b, state, ROW_COUNT)
    with loop(b, i64(0), word(b, description, COUNT)) as i:
        first = b.add(b.mul(i, i64(EACH)), i64(FIRST))
        target = b.inttoptr(word(b, description, first), POINTER)
        before, shift, factor, constant = (word(b, description, b.add(first, i64(k))) for k in range(1, EACH))
        quotient = b.lshr(b.add(rows, before), shift)
        b.store(b.add(b.mul(quotient, factor), constant), target)
    b.ret_void()
    return function


def emit_place_shape(module: ir.Module) -> ir.Function:
    """`place_shape(words, extents, memory)`: the rank of a new array with free extents, whose shape the memory gets."""
    function, b = _begin(module, "place_shape", ir.FunctionType(I64, [POINTER] * 3))
    words, extents, memory = function.args
    free, rest = word(b, words, 2), word(b, words, 3)
    with loop(b, i64(0), free) as d:
        b.store(word(b, extents, d), at(b, memory, b.mul(d, i64(8))))
    with loop(b, i64(0), rest) as d:
        b.store(word(b, words, b.add(d, i64(4))), at(b, memory, b.mul(b.add(free, d), i64(8))))
    b.ret(b.add(free, rest))
    return function


__all__ = ["EXTENTS", "RANK", "STATE", "emit_match", "emit_place_shape", "emit_set_words", "fits"]
