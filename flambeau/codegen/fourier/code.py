"""Fourier transforms of contiguous rows: code generation.

A complex row is split into real and imaginary parts in the first stage and interleaved at the end; the stages go back
and forth between two buffers. An inverse transform exchanges the two parts before and after. A real signal of 2 N
elements is a complex one of N, from whose transform `post` makes that of the signal; `pre` is the inverse. Both have
a factor of the ends, elements 0 and N of the spectrum: the adjoint of one is the other with another factor, because
the other elements stand for their mirror images too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import cos, pi, sin, sqrt
from typing import Any

import numpy as np
from llvmlite import ir

from ..llvm import kernel_entry
from ..llvm.loop_nests import (
    I8,
    I32,
    I64,
    POINTER,
    as_opaque_pointer,
    at,
    first_lanes,
    i64,
    larger,
    local,
    loop,
    smaller,
    transpose_vectors,
    word,
)
from ..llvm.lowering import constant, intrinsic, memory_type, splat, value_type
from ..llvm.vectors import host_has_fma
from .twiddles import RADICES

_DOUBLE = ir.DoubleType()
Complex = tuple[Any, Any]
#: of the plan: fields before those of the stages, and fields of a stage
(ROWS, ROWS_OF_CHUNK, INNER_ROWS, OUTER_STRIDE, INNER_STRIDE, OUT_STRIDE, LENGTH, SCALE, ENDS, BUFFER, ON_STACK,
 REAL_TABLE, STAGES) = range(13)
STAGE_FIELDS = 4
#: fields of the plan of one step of a row that several threads transform: the row's offsets, the extent of a chunk,
#: which buffer is read, and the stage
(STEP_IN, STEP_OUT, STEP_SHARE, STEP_TOTAL, STEP_SOURCE, STEP_LENGTH, STEP_SCALE, STEP_ENDS, STEP_BUFFER, STEP_TABLE,
 STEP_RADIX, STEP_M, STEP_S) = range(13)

#: how the first stage reads: complex numbers, the same with parts exchanged, or split parts
READS = ("complex", "exchanged", "split")
#: transforms: how the first stage reads
KINDS = {"c2c": "complex", "c2c_inverse": "exchanged", "r2c": "complex", "c2r": "split"}


class Emitter:
    """Emits the module of a dtype.

    Args:
        dtype: float32 or float64.
        lanes: elements of a vector.
    """

    def __init__(self, dtype: np.dtype, lanes: int) -> None:
        self.dtype, self.lanes, self.size = dtype, lanes, dtype.itemsize
        self.element, self.vector = memory_type(dtype), value_type(dtype, lanes)
        self.module = ir.Module("fourier")
        self.functions: dict[str, ir.Function] = {}
        self.fused = host_has_fma()
        self.b: Any = None

    # ----- arithmetic of vectors of complex numbers -----

    def _constant(self, x: float) -> Any:
        return constant(np.dtype(self.dtype).type(x).item(), self.vector)

    def _fma(self, x: Any, y: Any, z: Any) -> Any:
        """x y + z."""
        if self.fused:
            return intrinsic(self.b, "fma", self.vector, [x, y, z])
        return self.b.fadd(self.b.fmul(x, y), z)

    def _add(self, x: Complex, y: Complex) -> Complex:
        return self.b.fadd(x[0], y[0]), self.b.fadd(x[1], y[1])

    def _sub(self, x: Complex, y: Complex) -> Complex:
        return self.b.fsub(x[0], y[0]), self.b.fsub(x[1], y[1])

    def _mul(self, x: Complex, y: Complex) -> Complex:
        b = self.b
        return (self._fma(x[0], y[0], b.fneg(b.fmul(x[1], y[1]))), self._fma(x[0], y[1], b.fmul(x[1], y[0])))

    def _times_minus_i(self, x: Complex) -> Complex:
        return x[1], self.b.fneg(x[0])

    def _butterfly(self, x: list[Complex]) -> list[Complex]:
        """The transform of a few vectors of complex numbers."""
        b, r = self.b, len(x)
        if r == 1:
            return x
        if r == 2:
            return [self._add(x[0], x[1]), self._sub(x[0], x[1])]
        if r == 4:
            even, odd = self._butterfly(x[::2]), self._butterfly(x[1::2])
            turned = self._times_minus_i(odd[1])
            return [self._add(even[0], odd[0]), self._add(even[1], turned), self._sub(even[0], odd[0]),
                    self._sub(even[1], turned)]
        if r == 8:
            even, odd = self._butterfly(x[::2]), self._butterfly(x[1::2])
            half = self._constant(sqrt(0.5))
            (r1, i1), (r3, i3) = odd[1], odd[3]
            odd[1] = b.fmul(half, b.fadd(r1, i1)), b.fmul(half, b.fsub(i1, r1))
            odd[2] = self._times_minus_i(odd[2])
            odd[3] = b.fmul(half, b.fsub(i3, r3)), b.fneg(b.fmul(half, b.fadd(i3, r3)))
            return [*map(self._add, even, odd), *map(self._sub, even, odd)]
        pairs = [(self._add(x[j], x[r - j]), self._sub(x[j], x[r - j])) for j in range(1, r // 2 + 1)]
        first = x[0]
        for each, _ in pairs:
            first = self._add(first, each)
        result = [first] * r
        for k in range(1, r // 2 + 1):
            real: Complex = x[0]
            sines: Any = None
            for j, (total, difference) in enumerate(pairs, 1):
                c, s = self._constant(cos(2 * pi * j * k / r)), self._constant(sin(2 * pi * j * k / r))
                real = self._fma(c, total[0], real[0]), self._fma(c, total[1], real[1])
                sines = ((b.fmul(s, difference[0]), b.fmul(s, difference[1])) if sines is None else
                         (self._fma(s, difference[0], sines[0]), self._fma(s, difference[1], sines[1])))
            turned = self._times_minus_i(sines)
            result[k], result[r - k] = self._add(real, turned), self._sub(real, turned)
        return result

    # ----- memory -----

    def _load(self, base: Any, index: Any, mask: Any = None) -> Any:
        b = self.b
        address = b.gep(base, [index], source_etype=self.element)
        if mask is None:
            return b.load(address, typ=self.vector, align=self.size)
        return intrinsic(b, "masked.load", self.vector,
                         [address, ir.Constant(I32, self.size), mask, constant(0, self.vector)],
                         [self.vector, POINTER])

    def _store(self, value: Any, base: Any, index: Any) -> None:
        self.b.store(value, self.b.gep(base, [index], source_etype=self.element), align=self.size)

    def _splat_at(self, base: Any, index: int) -> Any:
        b = self.b
        return splat(b, b.load(b.gep(base, [i64(index)], source_etype=self.element), typ=self.element), self.lanes)

    def _shuffle(self, x: Any, y: Any, order: Sequence[int]) -> Any:
        return self.b.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, len(order)), list(order)))

    def _split(self, low: Any, high: Any) -> Complex:
        """Real and imaginary parts of interleaved vectors."""
        lanes = self.lanes
        return (self._shuffle(low, high, range(0, 2 * lanes, 2)), self._shuffle(low, high, range(1, 2 * lanes, 2)))

    def _load_complex(self, base: Any, index: Any, count: Any = None) -> Complex:
        """Complex numbers from element `index` on; only `count` of them if given."""
        b, lanes = self.b, self.lanes
        place = b.shl(index, i64(1))
        masks = [None, None] if count is None else [
            first_lanes(b, b.sub(b.shl(count, i64(1)), i64(i * lanes)), lanes) for i in range(2)]
        halves = []
        for i, mask in enumerate(masks):
            halves.append(self._load(base, b.add(place, i64(i * lanes)), mask))
        return self._split(*halves)

    def _store_complex(self, x: Complex, base: Any, index: Any) -> None:
        b, lanes = self.b, self.lanes
        place = b.shl(index, i64(1))
        for i in range(2):
            order = [each for j in range(i * lanes // 2, (i + 1) * lanes // 2) for each in (j, lanes + j)]
            self._store(self._shuffle(*x, order), base, b.add(place, i64(i * lanes)))

    def _reversed(self, x: Any) -> Any:
        return self._shuffle(x, x, range(self.lanes - 1, -1, -1))

    # ----- stages -----

    def _begin(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        function, self.b = kernel_entry.begin(self.module, name, ir.FunctionType(ir.VoidType(), arguments))
        function.linkage = "internal"
        function.attributes.add("noinline")
        self.functions[name] = function
        return list(function.args)

    def first_stage(self, read: str) -> None:
        """first(source, imaginary parts, out_re, out_im, table, m, begin, end): blocks of p. `split` has both."""
        source, imaginary, out_re, out_im, table, m, begin, end = self._begin(
            f"first_{read}", [POINTER] * 5 + [I64] * 3)
        b, lanes = self.b, self.lanes
        step = i64(2 * (lanes - 1) * lanes * self.size)
        full = smaller(b, end, b.sdiv(m, i64(lanes)))

        def block(j: Any, masked: bool) -> None:
            p = b.mul(j, i64(lanes))
            count = b.sub(m, p) if masked else None
            values: list[Complex] = []
            for k in range(lanes):
                index = b.add(p, b.mul(m, i64(k)))
                if read == "split":
                    mask = None if count is None else first_lanes(b, count, lanes)
                    value = self._load(source, index, mask), self._load(imaginary, index, mask)
                else:
                    value = self._load_complex(source, index, count)
                values.append(value[::-1] if read == "exchanged" else value)
            roots = at(b, table, b.mul(j, step))
            results = self._butterfly(values)
            for k in range(1, lanes):
                root = [self._load(roots, i64((2 * k - 2 + part) * lanes)) for part in range(2)]
                results[k] = self._mul(results[k], (root[0], root[1]))
            for part, out in enumerate((out_re, out_im)):
                for i, row in enumerate(transpose_vectors(b, [each[part] for each in results])):
                    self._store(row, out, b.add(b.mul(p, i64(lanes)), i64(i * lanes)))

        with loop(b, begin, full) as j:
            block(j, False)
        with loop(b, larger(b, begin, full), end) as j:
            block(j, True)
        b.ret_void()

    def stage(self, radix: int) -> None:
        """stage(re, im, out_re, out_im, table, m, s, begin, end): vectors number p * s / lanes + q."""
        re, im, out_re, out_im, table, m, s, begin, end = self._begin(f"stage_{radix}", [POINTER] * 5 + [I64] * 4)
        b, lanes = self.b, self.lanes
        vectors = b.sdiv(s, i64(lanes))
        last = b.sdiv(b.add(end, b.sub(vectors, i64(1))), vectors)
        between = b.mul(m, s)
        with loop(b, b.sdiv(begin, vectors), last) as p:
            here = b.mul(p, vectors)
            low = b.mul(larger(b, i64(0), b.sub(begin, here)), i64(lanes))
            high = b.mul(smaller(b, vectors, b.sub(end, here)), i64(lanes))
            roots_at = at(b, table, b.mul(p, i64(2 * (radix - 1) * self.size)))
            roots = [(self._splat_at(roots_at, 2 * k), self._splat_at(roots_at, 2 * k + 1)) for k in range(radix - 1)]
            read, write = b.mul(p, s), b.mul(b.mul(p, i64(radix)), s)
            sources = [b.add(read, b.mul(between, i64(k))) for k in range(radix)]
            targets = [b.add(write, b.mul(s, i64(k))) for k in range(radix)]

            def body(q: Any, multiply: bool) -> None:
                values = [(self._load(re, b.add(each, q)), self._load(im, b.add(each, q))) for each in sources]
                results = self._butterfly(values)
                for k in range(1, radix if multiply else 0):
                    results[k] = self._mul(results[k], roots[k - 1])
                for (real, imaginary), each in zip(results, targets, strict=True):
                    self._store(real, out_re, b.add(each, q))
                    self._store(imaginary, out_im, b.add(each, q))

            with b.if_else(b.icmp_signed("==", p, i64(0))) as (is_one, others):  # the roots of p = 0 are 1
                with is_one, loop(b, low, high, lanes) as q:
                    body(q, False)
                with others, loop(b, low, high, lanes) as q:
                    body(q, True)
        b.ret_void()

    def store(self) -> None:
        """store(re, im, out, length, scale, begin, end): interleave the parts, times the scale."""
        re, im, out, _, scale, begin, end = self._begin("store", [POINTER] * 3 + [I64, self.element, I64, I64])
        b, lanes = self.b, self.lanes
        factor = splat(b, scale, lanes)
        with loop(b, begin, end, lanes) as k:
            self._store_complex((b.fmul(self._load(re, k), factor), b.fmul(self._load(im, k), factor)), out, k)
        b.ret_void()

    def post(self) -> None:
        """post(re, im, out, length, scale, ends, begin, end, table): the transform of a real signal of 2 length."""
        re, im, out, length, scale, ends, begin, end, table = self._begin(
            "post", [POINTER] * 3 + [I64, self.element, self.element, I64, I64, POINTER])
        b, lanes = self.b, self.lanes

        def element(base: Any, index: Any) -> Any:
            return b.gep(base, [index], source_etype=self.element)

        for part in (re, im):  # the transform is periodic; all chunks write the same
            b.store(b.load(part, typ=self.element), element(part, length))
        half = b.fmul(scale, ir.Constant(self.element, 0.5))
        factor = splat(b, half, lanes)
        imaginary_roots = element(table, length)
        with loop(b, begin, end, lanes) as k:
            mirrored = b.sub(b.sub(length, k), i64(lanes - 1))
            ar, ai = self._load(re, k), self._load(im, k)
            br, bi = self._reversed(self._load(re, mirrored)), self._reversed(self._load(im, mirrored))
            wr, wi = self._load(table, k), self._load(imaginary_roots, k)
            er, ei, dr, di = b.fadd(ar, br), b.fsub(ai, bi), b.fsub(ar, br), b.fadd(ai, bi)
            real = self._fma(wr, di, self._fma(wi, dr, er))
            imaginary = self._fma(wi, di, self._fma(b.fneg(wr), dr, ei))
            self._store_complex((b.fmul(real, factor), b.fmul(imaginary, factor)), out, k)
        ends = b.fmul(ends, scale)
        zero, one = b.load(re, typ=self.element), b.load(im, typ=self.element)
        for edge, at_, place, value in ((end, length, element(out, b.shl(length, i64(1))), b.fsub(zero, one)),
                                        (begin, i64(0), out, b.fadd(zero, one))):
            with b.if_then(b.icmp_signed("==", edge, at_)):
                b.store(b.fmul(value, ends), place)
                b.store(ir.Constant(self.element, 0.0), element(place, i64(1)))
        b.ret_void()

    def pre(self) -> None:
        """pre(source, re, im, length, ends, begin, end, table): the inverse of `post`, without scale."""
        source, re, im, length, ends, begin, end, table = self._begin(
            "pre", [POINTER] * 3 + [I64, self.element, I64, I64, POINTER])
        b, lanes = self.b, self.lanes
        imaginary_roots = b.gep(table, [length], source_etype=self.element)
        with loop(b, begin, end, lanes) as k:
            mirrored = b.sub(b.sub(length, k), i64(lanes - 1))
            ar, ai = self._load_complex(source, k)
            br, bi = map(self._reversed, self._load_complex(source, mirrored))
            wr, wi = self._load(table, k), self._load(imaginary_roots, k)
            er, ei, dr, di = b.fadd(ar, br), b.fsub(ai, bi), b.fsub(ar, br), b.fadd(ai, bi)
            self._store(self._fma(wi, dr, self._fma(b.fneg(wr), di, er)), re, k)
            self._store(self._fma(wi, di, self._fma(wr, dr, ei)), im, k)
        with b.if_then(b.icmp_signed("==", begin, i64(0))):  # imaginary parts of the first and the last are ignored
            first = b.load(source, typ=self.element)
            last = b.load(b.gep(source, [b.shl(length, i64(1))], source_etype=self.element), typ=self.element)
            b.store(b.fmul(b.fadd(first, last), ends), re)
            b.store(b.fmul(b.fsub(first, last), ends), im)
        b.ret_void()

    # ----- bodies -----

    def _call(self, name: str, *arguments: Any) -> None:
        self.b.call(self.functions[name], arguments)

    def _scale(self, bits: Any) -> Any:
        value = self.b.bitcast(bits, _DOUBLE)
        return value if self.size == 8 else self.b.fptrunc(value, self.element)

    def _call_stage(self, radix: Any, arguments: Sequence[Any]) -> None:
        b = self.b
        after = b.function.append_basic_block("staged")
        switch = b.switch(radix, after)
        for each in RADICES:
            block = b.function.append_basic_block(f"radix_{each}")
            switch.add_case(i64(each), block)
            b.position_at_end(block)
            self._call(f"stage_{each}", *arguments)
            b.branch(after)
        b.position_at_end(after)

    def _blocks(self, m: Any) -> Any:
        """The number of blocks of the first stage."""
        return self.b.sdiv(self.b.add(m, i64(self.lanes - 1)), i64(self.lanes))

    def _parts(self, buffers: Any, buffer: Any, which: Any) -> tuple[Any, Any]:
        """The real and imaginary parts of buffer 0 or 1."""
        b = self.b
        half = b.mul(buffer, i64(self.size))
        real = at(b, buffers, b.mul(b.shl(which, i64(1)), half))
        return real, at(b, real, half)

    def rows(self, kind: str) -> None:
        """The body of a kind: a chunk transforms some rows."""
        body, self.b = kernel_entry.begin(self.module, kind, kernel_entry.BODY)
        b, lanes = self.b, self.lanes
        pointers, plan, chunk = body.args
        out, source, tables, scratch = (
            b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER) for i in range(4))
        (rows, share, inner_rows, outer_stride, inner_stride, out_stride, length, scale, ends, buffer, on_stack,
         real_table, stages) = (word(b, plan, i) for i in range(STAGES + 1))
        bytes_ = b.mul(buffer, i64(4 * self.size))
        held = b.icmp_signed("!=", on_stack, i64(0))
        stack = b.alloca(I8, size=b.select(held, b.add(bytes_, i64(64)), i64(64)))
        stack.align = 64
        buffers = b.select(held, as_opaque_pointer(b, stack), at(b, scratch, b.mul(chunk, bytes_)))
        fields = b.gep(plan, [i64(STAGES + 1)], source_etype=I64)
        scale, ends = self._scale(scale), self._scale(ends)
        real_table = at(b, tables, b.mul(real_table, i64(self.size)))
        a, c = (self._parts(buffers, buffer, i64(i)) for i in range(2))
        first_row = b.mul(chunk, share)
        places = [local(b, POINTER) for _ in range(4)]
        with loop(b, first_row, smaller(b, b.add(first_row, share), rows)) as row:
            x = at(b, source, b.add(b.mul(b.sdiv(row, inner_rows), outer_stride),
                                    b.mul(b.srem(row, inner_rows), inner_stride)))
            y = at(b, out, b.mul(row, out_stride))
            m = word(b, fields, 1)
            if kind == "c2r":
                self._call("pre", x, c[1], c[0], length, ends, i64(0), length, real_table)
                self._call("first_split", *c, *a, tables, m, i64(0), self._blocks(m))
            else:
                self._call(f"first_{KINDS[kind]}", x, x, *a, tables, m, i64(0), self._blocks(m))
            for place, value in zip(places, (*a, *c), strict=True):
                b.store(value, place)
            with loop(b, i64(1), stages) as i:
                radix, m, s, table = (word(b, fields, b.add(b.mul(i, i64(STAGE_FIELDS)), i64(j))) for j in range(4))
                from_re, from_im, to_re, to_im = now = [b.load(each, typ=POINTER) for each in places]
                vectors = b.sdiv(b.mul(m, s), i64(lanes))
                self._call_stage(radix, [from_re, from_im, to_re, to_im, at(b, tables, b.mul(table, i64(self.size))),
                                         m, s, i64(0), vectors])
                for place, value in zip(places, now[2:] + now[:2], strict=True):
                    b.store(value, place)
            re, im = (b.load(each, typ=POINTER) for each in places[:2])
            if kind.startswith("r2c"):
                self._call("post", re, im, y, length, scale, ends, i64(0), length, real_table)
            elif kind == "c2c":
                self._call("store", re, im, y, length, scale, i64(0), length)
            else:
                self._call("store", im, re, y, length, scale, i64(0), length)
        b.ret_void()

    def step(self, name: str, emit: Callable[..., None]) -> None:
        """The body of one step of a row that is shared by threads: a chunk computes a part of it."""
        body, self.b = kernel_entry.begin(self.module, f"step_{name}", kernel_entry.BODY)
        b = self.b
        pointers, plan, chunk = body.args
        out, source, tables, scratch = (
            b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER) for i in range(4))
        fields = [word(b, plan, i) for i in range(STEP_S + 1)]
        begin = b.mul(chunk, fields[STEP_SHARE])
        end = smaller(b, b.add(begin, fields[STEP_SHARE]), fields[STEP_TOTAL])
        which = fields[STEP_SOURCE]
        read = self._parts(scratch, fields[STEP_BUFFER], which)
        write = self._parts(scratch, fields[STEP_BUFFER], b.xor(which, i64(1)))
        table = at(b, tables, b.mul(fields[STEP_TABLE], i64(self.size)))
        emit(fields, begin, end, at(b, source, fields[STEP_IN]), at(b, out, fields[STEP_OUT]), read, write, table)
        b.ret_void()

    def steps(self) -> None:
        """The bodies of all steps."""
        def first(read_as: str) -> Callable[..., None]:
            def emit(fields: Any, begin: Any, end: Any, x: Any, y: Any, read: Any, write: Any,
                     table: Any) -> None:
                pair = read if read_as == "split" else (x, x)
                self._call(f"first_{read_as}", *pair, *write, table, fields[STEP_M], begin, end)

            return emit

        def stage(fields: Any, begin: Any, end: Any, x: Any, y: Any, read: Any, write: Any, table: Any) -> None:
            self._call_stage(fields[STEP_RADIX], [*read, *write, table, fields[STEP_M], fields[STEP_S], begin, end])

        def store(exchanged: bool) -> Callable[..., None]:
            def emit(fields: Any, begin: Any, end: Any, x: Any, y: Any, read: Any, write: Any,
                     table: Any) -> None:
                self._call("store", *(read[::-1] if exchanged else read), y, fields[STEP_LENGTH],
                           self._scale(fields[STEP_SCALE]), begin, end)

            return emit

        def post(fields: Any, begin: Any, end: Any, x: Any, y: Any, read: Any, write: Any, table: Any) -> None:
            self._call("post", *read, y, fields[STEP_LENGTH], self._scale(fields[STEP_SCALE]),
                       self._scale(fields[STEP_ENDS]), begin, end, table)

        def pre(fields: Any, begin: Any, end: Any, x: Any, y: Any, read: Any, write: Any, table: Any) -> None:
            self._call("pre", x, *write[::-1], fields[STEP_LENGTH], self._scale(fields[STEP_ENDS]), begin, end, table)

        for each in READS:
            self.step(f"first_{each}", first(each))
        self.step("stage", stage)
        self.step("store", store(False))
        self.step("store_exchanged", store(True))
        self.step("post", post)
        self.step("pre", pre)


#: the functions that a module exports
NAMES = (*KINDS, *(f"step_{each}" for each in (*(f"first_{read}" for read in READS), "stage", "store",
                                               "store_exchanged", "post", "pre")))


def generate(dtype: np.dtype, lanes: int) -> str:
    """The module's text."""
    emitter = Emitter(dtype, lanes)
    for read in READS:
        emitter.first_stage(read)
    for radix in RADICES:
        emitter.stage(radix)
    emitter.store()
    emitter.post()
    emitter.pre()
    for kind in KINDS:
        emitter.rows(kind)
    emitter.steps()
    return str(emitter.module)


__all__ = ["KINDS", "NAMES", "Emitter", "generate"]
