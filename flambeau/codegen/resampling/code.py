"""Kernels of resampling: code generation.

out[l, o, i] = Σ_t weight[t, o] · x[l, position[t, o], i], each product and sum rounded as written, taps in order. A tap
of weight 0 adds nothing. With `inner` elements behind the dimension vectors are over these; without, over outputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from ..llvm import kernel_entry
from ..llvm.loop_nests import I1, I32, I64, POINTER, first_lanes, i64, loop, smaller, word
from ..llvm.lowering import constant, intrinsic, memory_type, splat

#: fields of the plan; positions and weights follow, by tap, each in a word
UNITS, SIZE, OUTPUTS, INNER, SHARE, TABLES = range(6)


class _Emitter:
    def __init__(self, dtype: np.dtype, taps: int, lanes: int) -> None:
        self.dtype, self.taps, self.lanes = dtype, taps, lanes
        self.element = memory_type(dtype)
        self.vector = ir.VectorType(self.element, lanes)

    def _begin(self, module: ir.Module) -> tuple[Any, Any]:
        body, self.b = kernel_entry.begin(module, "body", kernel_entry.BODY)
        b = self.b
        pointers, self.plan, chunk = body.args
        self.out, self.x = (b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER) for i in range(2))
        self.size, self.outputs, self.inner = (word(b, self.plan, i) for i in (SIZE, OUTPUTS, INNER))
        share = word(b, self.plan, SHARE)
        first = b.mul(chunk, share)
        return first, smaller(b, b.add(first, share), word(b, self.plan, UNITS))

    def _table(self, which: int, tap: int, output: Any) -> Any:
        """The address of a position (which = 0) or weight (1)."""
        b = self.b
        row = b.mul(self.outputs, i64(which * self.taps + tap))
        return b.gep(self.plan, [b.add(b.add(i64(TABLES), row), output)], source_etype=I64)

    def _element(self, base: Any, index: Any) -> Any:
        return self.b.gep(base, [index], source_etype=self.element)

    def _masked(self, name: str, place: Any, mask: Any, value: Any = None) -> Any:
        align = ir.Constant(I32, self.dtype.itemsize)
        if value is None:
            return intrinsic(self.b, name, self.vector, [place, align, mask, constant(0, self.vector)],
                             [self.vector, POINTER])
        return intrinsic(self.b, name, ir.VoidType(), [value, place, align, mask], [self.vector, POINTER])

    def _total(self, weights: list[Any], values: list[Any]) -> Any:
        b, total = self.b, None
        for weight, value in zip(weights, values, strict=True):
            term = b.select(b.fcmp_unordered("!=", weight, constant(0.0, self.vector)), b.fmul(value, weight),
                            constant(0.0, self.vector))
            total = term if total is None else b.fadd(total, term)
        return total

    def across(self) -> str:
        """A unit is an output of a line."""
        module = ir.Module("resample")
        first, last = self._begin(module)
        b = self.b
        with loop(b, first, last) as unit:
            line, output = b.sdiv(unit, self.outputs), b.srem(unit, self.outputs)
            start = b.mul(b.mul(line, self.size), self.inner)
            sources, weights = [], []
            for t in range(self.taps):
                position = b.load(self._table(0, t, output), typ=I64)
                sources.append(self._element(self.x, b.add(start, b.mul(position, self.inner))))
                weights.append(splat(b, b.load(self._table(1, t, output), typ=self.element), self.lanes))
            target = self._element(self.out, b.mul(unit, self.inner))
            with loop(b, i64(0), self.inner, self.lanes) as i:
                mask = first_lanes(b, b.sub(self.inner, i), self.lanes)
                values = [self._masked("masked.load", self._element(each, i), mask) for each in sources]
                self._masked("masked.store", self._element(target, i), mask, self._total(weights, values))
        b.ret_void()
        return str(module)

    def along(self) -> str:
        """A unit is a line."""
        module = ir.Module("resample")
        first, last = self._begin(module)
        b, lanes = self.b, self.lanes
        words = ir.VectorType(I64, lanes)
        addresses = ir.VectorType(POINTER, lanes)
        everything = ir.Constant(ir.VectorType(I1, lanes), [1] * lanes)
        with loop(b, i64(0), self.outputs, lanes) as output:
            mask = first_lanes(b, b.sub(self.outputs, output), lanes)
            places, weights = [], []
            for t in range(self.taps):
                position, bits = (intrinsic(b, "masked.load", words, [
                    self._table(which, t, output), ir.Constant(I32, 8), mask, constant(0, words)], [words, POINTER])
                    for which in range(2))
                places.append(b.trunc(position, ir.VectorType(I32, lanes)))
                if self.dtype.itemsize == 4:
                    bits = b.trunc(bits, ir.VectorType(I32, lanes))
                weights.append(b.bitcast(bits, self.vector))
            with loop(b, first, last) as line:
                base = self._element(self.x, b.mul(line, self.size))
                values = []
                for place in places:
                    address = b.gep(base, [place], source_etype=self.element)
                    address.type = addresses  # llvmlite types it as one pointer
                    values.append(intrinsic(b, "masked.gather", self.vector, [
                        address, ir.Constant(I32, self.dtype.itemsize), everything, constant(0, self.vector)],
                        [self.vector, addresses]))
                target = self._element(self.out, b.add(b.mul(line, self.outputs), output))
                self._masked("masked.store", target, mask, self._total(weights, values))
        b.ret_void()
        return str(module)


def generate(across: bool, dtype: np.dtype, taps: int, lanes: int) -> str:
    """The module's text; `across`: there are elements behind the dimension."""
    emitter = _Emitter(dtype, taps, lanes)
    return emitter.across() if across else emitter.along()


__all__ = ["TABLES", "generate"]
