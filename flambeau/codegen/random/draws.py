"""Draws of one call: built-in functions that fill an array with random numbers, from the state of a Mersenne Twister.

Words are tempered into a buffer on the stack and converted from there; `_KINDS` has the conversions. The numbers are
those of `kernels.random`, bit for bit.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from ...runtime import entry_points, launch, numpy_abi, thread_pool
from ...runtime.launch import Spec
from ..elementwise import elementwise
from ..llvm import kernel_entry
from ..llvm.kernel_entry import BODY, FunctionPointer
from ..llvm.loop_nests import I32, I64, POINTER, as_opaque_pointer, at, i64, local, loop, smaller, word
from . import mersenne_twister, normals

#: words of a block: the addresses of the state and of `mersenne_twister.draw`; the fields of `entry_points`
_STATE, _DRAW, _ADDRESSES = range(3)
_FIELDS = entry_points.field_indices(_ADDRESSES)
#: a draw of more numbers releases the GIL
_LONG = 1 << 16
_LANES = 8
_SINGLE, _DOUBLE, _VOID = ir.FloatType(), ir.DoubleType(), ir.VoidType()
_BUILTIN = ir.FunctionType(POINTER, [POINTER, POINTER, I64])
_DRAWING = ir.FunctionType(I64, [POINTER, I64, POINTER, I64])
#: bytes between the halves of a block of Box and Muller's transform: eight radii, eight angles
_EIGHT = 8
_HALF, _BLOCK = 4 * _EIGHT, 2 * _EIGHT
#: numbers of blocks below this power of two are transformed
_POWERS = 11


class _Site(NamedTuple):
    """Where a number is converted.

    Attributes:
        builder: emits the instructions.
        out: the array's data.
        index, count: the number's index, and how many the array has.
        words: the address of its first word.
        parameters: those of the kind.
    """

    builder: ir.IRBuilder
    out: Any
    index: Any
    count: Any
    words: Any
    parameters: list[Any]

    def store(self, value: Any, index: Any = None) -> None:
        """Store an element of the array."""
        place = self.builder.gep(self.out, [self.index if index is None else index], source_etype=value.type)
        self.builder.store(value, place, align=4)


def _unit(site: _Site, lanes: int = 1) -> Any:
    """Uniforms of the lower 24 bits of a word each."""
    b, integer, real = site.builder, I32, _SINGLE
    mask, scale = (1 << 24) - 1, 2.0**-24
    if lanes > 1:
        integer, real = ir.VectorType(I32, lanes), ir.VectorType(_SINGLE, lanes)
        mask, scale = [mask] * lanes, [scale] * lanes  # type: ignore[assignment]
    bits = b.and_(b.load(site.words, typ=integer, align=4), ir.Constant(integer, mask))
    return b.fmul(b.sitofp(bits, real), ir.Constant(real, scale))


def _bits(site: _Site) -> Any:
    """The lower 53 bits of two words, the high word first."""
    b = site.builder
    first, second = (b.zext(b.load(b.gep(site.words, [i64(k)], source_etype=I32), typ=I32), I64) for k in range(2))
    return b.or_(b.shl(b.and_(first, i64((1 << 21) - 1)), i64(32)), second)


def _singles(site: _Site, lanes: int = 1) -> None:
    site.store(_unit(site, lanes))


def _doubles(site: _Site) -> None:
    b = site.builder
    site.store(b.fmul(b.sitofp(_bits(site), _DOUBLE), ir.Constant(_DOUBLE, 2.0**-53)))


def _remainders(site: _Site) -> None:
    b, (size, low) = site.builder, site.parameters
    remainder = b.urem(b.load(site.words, typ=I32), b.trunc(size, I32))
    site.store(b.add(b.zext(remainder, I64), low))


def _choices(site: _Site) -> None:
    b, (limit, value) = site.builder, site.parameters
    site.store(b.select(b.icmp_unsigned("<", _bits(site), limit), b.trunc(value, I32), ir.Constant(I32, 0)))


def _events(site: _Site) -> None:
    b, (chances,) = site.builder, site.parameters
    chance = b.load(b.gep(chances, [site.index], source_etype=_SINGLE), typ=_SINGLE)
    site.store(b.uitofp(b.fcmp_ordered("<", _unit(site), chance), _SINGLE))


def _swap(site: _Site) -> None:
    b, out = site.builder, site.out
    left = b.trunc(b.sub(site.count, site.index), I32)
    there = b.add(site.index, b.zext(b.urem(b.load(site.words, typ=I32), left), I64))
    here_number, there_number = word(b, out, site.index), word(b, out, there)
    site.store(there_number)
    site.store(here_number, there)


class _Kind(NamedTuple):
    """A kind of numbers.

    Attributes:
        convert: emits the conversion of a number.
        words: words of a number.
        parameters: how many ints follow the array; "chances": an array, "launches": the address of
            `normal_launches`.
        vectors: whether `convert` has lanes.
        permutes: whether the array is first filled with the numbers from 0 on, and the last is not drawn for.
    """

    convert: Callable[..., None]
    words: int
    parameters: int | str = 0
    vectors: bool = False
    permutes: bool = False


_KINDS = {
    "singles": _Kind(_singles, 1, vectors=True),
    "transformed": _Kind(_singles, 1, "launches", vectors=True),
    "doubles": _Kind(_doubles, 2),
    "remainders": _Kind(_remainders, 1, 2),
    "choices": _Kind(_choices, 2, 2),
    "events": _Kind(_events, 1, "chances"),
    "permutation": _Kind(_swap, 1, permutes=True),
}


def _elements(b: ir.IRBuilder, array: Any) -> Any:
    """The number of an array's elements."""
    rank = b.sext(b.load(at(b, array, numpy_abi.NDIM), typ=I32), I64)
    shape = b.load(at(b, array, numpy_abi.SHAPE), typ=POINTER)
    total = local(b, I64)
    b.store(i64(1), total)
    with loop(b, i64(0), rank) as d:
        b.store(b.mul(b.load(total, typ=I64), word(b, shape, d)), total)
    return b.load(total, typ=I64)


def _fill(b: ir.IRBuilder, kind: _Kind, block: Any, out: Any, count: Any, parameters: list[Any]) -> None:
    """Emit the draw of an array's numbers."""
    state = b.inttoptr(word(b, block, _STATE), POINTER)
    draw = FunctionPointer(b.inttoptr(word(b, block, _DRAW), POINTER), _DRAWING)
    buffer = as_opaque_pointer(b, local(b, I32, mersenne_twister.WORDS))
    position_at = at(b, state, 4 * mersenne_twister.WORDS)
    most = mersenne_twister.WORDS // kind.words
    drawn = b.sub(count, i64(1)) if kind.permutes else count
    if kind.permutes:
        with loop(b, i64(0), count) as i:
            b.store(i, b.gep(out, [i], source_etype=I64))
    with loop(b, i64(0), drawn, most) as done:
        few = smaller(b, b.sub(drawn, done), i64(most))
        position = b.sext(b.load(position_at, typ=I32), I64)
        after = b.call(draw, [buffer, b.mul(few, i64(kind.words)), state, position])
        b.store(b.trunc(after, I32), position_at)
        in_vectors = b.and_(few, i64(-_LANES)) if kind.vectors else i64(0)
        if kind.vectors:
            with loop(b, i64(0), in_vectors, _LANES) as i:
                words = b.gep(buffer, [i], source_etype=I32)
                kind.convert(_Site(b, b.gep(out, [b.add(done, i)], source_etype=_SINGLE), i64(0), count, words,
                                   parameters), _LANES)
        with loop(b, in_vectors, few) as i:
            words = b.gep(buffer, [b.mul(i, i64(kind.words))], source_etype=I32)
            kind.convert(_Site(b, out, b.add(done, i), count, words, parameters))


def _transform(b: ir.IRBuilder, kind: _Kind, block: Any, out: Any, count: Any, table: Any) -> None:
    """Emit the draw of an array's numbers and the transform of its complete blocks, a power of two at a time.

    The last sixteen numbers are drawn and transformed again if there is an incomplete block.
    """
    pointers, place = as_opaque_pointer(b, local(b, POINTER, 4)), local(b, POINTER)
    rows = b.inttoptr(table, POINTER)
    has_tail = b.icmp_signed("!=", b.and_(count, i64(_BLOCK - 1)), i64(0))
    with loop(b, i64(0), b.select(has_tail, i64(2), i64(1))) as part:
        length = b.select(b.icmp_signed("==", part, i64(1)), i64(_BLOCK), count)
        start = b.gep(out, [b.sub(count, length)], source_etype=_SINGLE)
        _fill(b, kind, block, start, length, [])
        blocks = b.lshr(length, i64(_BLOCK.bit_length() - 1))
        b.store(start, place)
        with loop(b, i64(0), i64(_POWERS)) as k:
            some = b.shl(i64(1), k)
            with b.if_then(b.icmp_signed("!=", b.and_(blocks, some), i64(0))):
                here = b.load(place, typ=POINTER)
                for i in range(4):
                    b.store(at(b, here, _HALF * (i % 2)), b.gep(pointers, [i64(i)], source_etype=POINTER))
                body, plan = (b.inttoptr(word(b, rows, b.add(b.mul(k, i64(3)), i64(i))), POINTER) for i in range(2))
                with loop(b, i64(0), word(b, rows, b.add(b.mul(k, i64(3)), i64(2)))) as chunk:
                    b.call(FunctionPointer(body, BODY), [pointers, plan, chunk])
                b.store(at(b, here, b.mul(some, i64(2 * _HALF))), place)


def _all_are_chances(b: ir.IRBuilder, chances: Any, count: Any) -> Any:
    """Whether all numbers are between 0 and 1."""
    valid = local(b, ir.IntType(1))
    b.store(ir.Constant(ir.IntType(1), 1), valid)
    with loop(b, i64(0), count) as i:
        chance = b.load(b.gep(chances, [i], source_etype=_SINGLE), typ=_SINGLE)
        within = b.and_(b.fcmp_ordered(">=", chance, ir.Constant(_SINGLE, 0.0)),
                        b.fcmp_ordered("<=", chance, ir.Constant(_SINGLE, 1.0)))
        b.store(b.and_(b.load(valid, typ=ir.IntType(1)), within), valid)
    return b.load(valid, typ=ir.IntType(1))


def _generate(name: str) -> str:
    kind, module = _KINDS[name], ir.Module(name)
    function, b = kernel_entry.begin(module, name, _BUILTIN)
    self, arguments, _ = function.args
    block = b.load(at(b, self, numpy_abi.DATA), typ=POINTER)

    def python(field: str, result: Any, *types: Any) -> FunctionPointer:
        return FunctionPointer(b.inttoptr(word(b, block, _FIELDS[field]), POINTER), ir.FunctionType(result, types))

    def argument(index: int) -> Any:
        return b.load(b.gep(arguments, [i64(index)], source_etype=POINTER), typ=POINTER)

    def data(array: Any) -> Any:
        """The address of an array's data; anything else is refused."""
        is_array = b.icmp_unsigned("==", b.ptrtoint(b.load(at(b, array, entry_points.TYPE), typ=POINTER), I64),
                                   word(b, block, _FIELDS["ndarray"]))
        with b.if_then(b.not_(is_array), likely=False):
            b.call(python("raise_error", _VOID, I64, I64),
                   [word(b, block, _FIELDS["error"]), word(b, block, _FIELDS["text"])])
            b.ret(ir.Constant(POINTER, None))
        return b.load(at(b, array, numpy_abi.DATA), typ=POINTER)

    array = argument(0)
    out, count = data(array), _elements(b, array)
    parameters: list[Any] = []
    if kind.parameters == "chances":
        parameters = [data(argument(1))]
        with b.if_then(b.not_(_all_are_chances(b, parameters[0], count)), likely=False):
            b.call(python("refer", _VOID, POINTER), [argument(1)])
            b.ret(argument(1))
    elif kind.parameters:
        parameters = [b.call(python("address_of", I64, POINTER), [argument(1 + k)])
                      for k in range(1 if kind.parameters == "launches" else 2)]
    long = b.icmp_signed(">", count, i64(_LONG))
    state = local(b, POINTER)
    with b.if_then(long, likely=False):
        b.store(b.call(python("save", POINTER), []), state)
    if kind.parameters == "launches":
        _transform(b, kind, block, out, count, parameters[0])
    else:
        _fill(b, kind, block, out, count, parameters)
    with b.if_then(long, likely=False):
        b.call(python("restore", _VOID, POINTER), [b.load(state, typ=POINTER)])
    b.call(python("refer", _VOID, POINTER), [array])
    b.ret(array)
    return str(module)


@cache
def _maker(name: str) -> Callable[[np.ndarray], Callable[..., Any]]:
    return entry_points.builtin_function_maker(name, _generate(name))


#: addresses of a body and a plan, and the chunks, that transform 1, 2, 4, ... blocks; which are there; what they use
_rows, _planned, _kept = np.zeros((_POWERS, 3), np.int64), [0], list[Any]()
_planning = threading.Lock()


def normal_launches(n: int) -> int | None:
    """The address of the launches that make up to n uniforms normal numbers; None: there is no kernel for so many.

    A number of blocks is a sum of powers of two: few plans serve all numbers.
    """
    blocks = n // _BLOCK
    missing = (blocks | bool(n % _BLOCK)) & ~_planned[0]
    if missing >> _POWERS or not blocks:
        return None
    if missing:
        with _planning:
            for power in range(missing.bit_length()):
                if missing >> power & 1 and not _plan(power):
                    return None
    return _rows.ctypes.data


def _plan(power: int) -> bool:
    """Plan the transform of `2**power` blocks; False: there is no kernel."""
    outputs = normals.numbers()
    if outputs is None:
        return False
    # a sum with 0, as in the fused z·1 + 0 of PyTorch: no zero is negative
    half = Spec((1 << power, _EIGHT), (2 * _HALF, 4), np.dtype(np.float32))
    (only,) = elementwise.launches([each + 0.0 for each in outputs], [half, half], [half, half])
    plan = launch.plan_array(only.words)
    _kept.append((only, plan))
    _rows[power] = launch.resolve(only.body), ctypes.addressof(plan), only.chunks % thread_pool.CALLER_ONLY
    _planned[0] |= 1 << power
    return True


class Draws:
    """Functions that fill a contiguous array from the state of a Mersenne Twister, and return it.

    Attributes:
        singles: (float32): uniforms in [0, 1).
        transformed: (float32, launches): the same, then Box and Muller's transform of blocks of sixteen.
        doubles: (float64): uniforms in [0, 1).
        remainders: (int64, size, low): a word modulo `size`, plus `low`.
        choices: (32-bit dtype, limit, bits): the value with these bits where 53 random bits are below `limit`, else 0.
        events: (float32, chances): 1 with the probability of the element of a float32 array, else 0; the second array,
            and no draw, if one is not between 0 and 1.
        permutation: (int64): the numbers from 0 on, by the Fisher-Yates shuffle, of at least one and below 2**32.
    """

    __slots__ = ("_block", "_poisson", "choices", "doubles", "events", "permutation", "remainders", "singles",
                 "transformed")

    def __init__(self, state: int) -> None:
        """`state` is the address of 624 words and the position, which must outlive the object."""
        self._poisson: list[tuple[Callable[..., Any], np.ndarray] | None] = []
        self._block = np.array([state, mersenne_twister.address(), *entry_points.block_fields()], np.int64)

    def normals(self, out: np.ndarray) -> np.ndarray | None:
        """Fill a float32 array of 16 to 32,767 elements with normal numbers; None: there is no kernel."""
        launches = normal_launches(out.size)
        return None if launches is None else self.transformed(out, launches)

    def poisson(self, out: np.ndarray, rates: np.ndarray) -> bool:
        """Fill a float64 array with Poisson counts of rates that are not negative; False: there is no function."""
        if not self._poisson:
            from . import poisson

            self._poisson.append(poisson.function(int(self._block[_STATE])))
        (found,) = self._poisson
        if found is None:
            return False
        found[1][0] = out.size
        found[0](out, rates)
        return True

    def __getattr__(self, name: str) -> Any:  # of a function that was not used yet
        if name not in _KINDS:
            raise AttributeError(name)
        function = _maker(name)(self._block)
        setattr(self, name, function)
        return function


__all__ = ["Draws", "normal_launches"]
