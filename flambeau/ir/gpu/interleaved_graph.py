"""The IR graph of a device's program: complex numbers in memory are read and written as pairs of real ones.

No complex value becomes a kernel. The parts of an input are views of its memory, those of a computed value are computed
each for itself, and results are assembled as pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph.complex_graph import ComplexGraph, Pair, complex_dtype, is_complex, real_dtype
from ..graph.extern_kernels import ExternKernel
from ..graph.value import BOOL, Unsupported, Value
from ..lowering.namespace import namespace_of

#: kernels of an array and an index, of the same number of dimensions, that move elements or add them up
_INDEXING = frozenset(("take", "put"))
#: operations of complex values that primitives of the namespace compute
_OF_NAMESPACE = {"div": "div", "recip": "reciprocal", "exp": "exp", "log": "log", "sqrt": "sqrt", "rsqrt": "rsqrt"}


class InterleavedGraph(ComplexGraph):
    """A graph whose complex values are pairs of parts, or of memory that holds pairs."""

    takes_pairs = True

    def __init__(self) -> None:
        super().__init__()
        self._memory: dict[Value, Value] = {}  # complex value that is no view -> its elements as real numbers, flat

    # ----- pairs -----

    def complex(self, real: Value, imag: Value) -> Value:
        """Complex numbers with these parts, of one shape."""
        if real.dtype.kind != "f" or real.dtype.itemsize < 4 or real.dtype != imag.dtype:
            raise Unsupported(f"complex numbers with parts of {real.dtype} and {imag.dtype}")
        shape, parts = self.broadcast([real, imag])
        real, imag = (self.expand(each, shape) for each in parts)
        result = self.make("complex", (real, imag), None, shape, complex_dtype(real.dtype))
        self._parts[result] = real, imag
        return result

    def from_memory(self, reals: Value, shape: Sequence[int]) -> Value:
        """Complex numbers whose parts are neighbours in memory.

        Args:
            reals: twice as many real numbers, no view.
        """
        result = self.make("complex", (reals,), None, tuple(shape), complex_dtype(reals.dtype))
        self._memory[result] = reals
        return result

    def memory_of(self, base: Value) -> Value | None:
        """The memory of a value that is no view, as real numbers; None where no memory holds it."""
        found = self._memory.get(base)
        if found is None and base.op == "input":
            found = self._memory[base] = self.input(base.attrs, (2 * base.size,), real_dtype(base.dtype))
        return found

    def parts(self, value: Value) -> Pair:
        if value.dtype.kind == "c":
            memory = self.memory_of(value.base)
            if memory is not None:
                strides = [2 * s for s in value.strides]
                real, imag = (self.view(memory, value.shape, strides, 2 * value.offset + k) for k in (0, 1))
                return real, imag
            if value.op == "view" and all(each.base.op == "constant" and not each.base.shape
                                          for each in self._parts_of(value.base)):
                real, imag = (self.expand(each.base, value.shape) for each in self._parts_of(value.base))
                return real, imag
        return super().parts(value)

    def _parts_of(self, base: Value) -> Pair:
        found = self._parts.get(base)
        if found is None:
            found = self._parts[base] = self._new_parts(base)
        return found

    def _new_parts(self, base: Value) -> Pair:
        if base.op != "constant":
            raise Unsupported(f"complex numbers by {base.op}")
        return super()._new_parts(base)

    def pairs(self, value: Value) -> Value:
        """A value as real numbers, with a last dimension for the parts."""
        memory = self.memory_of(value.base)
        if memory is not None:
            return self.view(memory, (*value.shape, 2), (*(2 * s for s in value.strides), 1), 2 * value.offset)
        return self.reshape(self.reinterpret(value, value.dtype), (*value.shape, 2))

    def for_pairs(self, index: Value) -> Value:
        """An index of complex elements as one of both parts."""
        return self.expand(self.unsqueeze(index, index.ndim), (*index.shape, 2))

    def reinterpret(self, value: Value, dtype: np.dtype) -> Value:
        """All elements of memory as another dtype, flat: complex numbers as pairs of real ones, or the reverse."""
        if value.dtype.kind != "c":
            n = value.size // 2
            return self.from_memory(self.reshape(self.copy(value), (2 * n,)).base, (n,))
        memory = self.memory_of(value)
        if memory is not None:
            return memory
        parts = [self.reshape(self.copy(each), (value.size,)) for each in self.parts(value)]
        return self._assembled((2 * value.size,), None, parts, [((2,), 0), ((2,), 1)])

    def _assembled(self, shape: Sequence[int], background: Value | None, pieces: Sequence[Value],
                   locations: Sequence[tuple[tuple[int, ...], int]]) -> Value:
        return super(ComplexGraph, self).assemble(shape, background, pieces, locations)

    # ----- operations -----

    def apply(self, op: str, *values: Any) -> Value:
        if op in _OF_NAMESPACE and any(map(is_complex, values)):
            found: Value = getattr(namespace_of(self), _OF_NAMESPACE[op])(*values)
            return found
        return super().apply(op, *values)

    def cast(self, value: Value, dtype: np.dtype) -> Value:
        if value.dtype.kind == "c" and dtype == BOOL:
            return self.apply("or", *(super(InterleavedGraph, self).cast(each, BOOL) for each in self.parts(value)))
        return super().cast(value, dtype)

    def assemble(self, shape: Sequence[int], background: Value | None, pieces: Sequence[Value],
                 locations: Sequence[tuple[tuple[int, ...], int]]) -> Value:
        if pieces[0].dtype.kind != "c":
            return self._assembled(shape, background, pieces, locations)
        shape = tuple(shape)
        behind = None if background is None else self._assembled_pairs(self.expand(background, shape))
        parts, places = [], []
        for piece, (strides, offset) in zip(pieces, locations, strict=True):
            doubled = tuple(2 * s for s in strides)
            if self.memory_of(piece.base) is not None:
                parts.append(self.pairs(piece))
                places.append(((*doubled, 1), 2 * offset))
            else:
                parts += self.parts(piece)
                places += [(doubled, 2 * offset), (doubled, 2 * offset + 1)]
        made = self._assembled((2 * int(np.prod(shape, dtype=np.int64)),), behind, parts, places)
        return self.from_memory(made, shape)

    def _assembled_pairs(self, value: Value) -> Value:
        """A value as real numbers, flat: where both parts are one number, that number."""
        real, imag = self.parts(value)
        if real is imag and real.base.op == "constant" and not real.base.shape:
            return self.expand(real.base, (2 * value.size,))
        return self.reshape(self.pairs(value), (2 * value.size,))

    def reduce(self, name: str, value: Value, dims: Sequence[int]) -> Value:
        if value.dtype.kind == "c" and name in ("any", "all"):
            return super().reduce(name, self.cast(value, BOOL), dims)
        if value.dtype.kind == "c" and name == "prod":
            return self._product(value, dims)
        return super().reduce(name, value, dims)

    def _product(self, value: Value, dims: Sequence[int]) -> Value:
        """A product over dimensions, of halves times halves."""
        axes = sorted(d % max(value.ndim, 1) for d in dims)
        kept = [d for d in range(value.ndim) if d not in axes]
        shape = tuple(value.shape[d] for d in kept)
        count = value.size // max(int(np.prod(shape, dtype=np.int64)), 1)
        x = self.reshape(self.permute(value, [*kept, *axes]), (*shape, count))
        last = len(shape)
        while count > 1:
            half = count // 2
            product = self.apply("mul", self.slice(x, last, 0, half), self.slice(x, last, half, half))
            x = product if count == 2 * half else self.cat([product, self.slice(x, last, 2 * half, 1)], last)
            count -= half
        return self.reshape(x, shape)

    def matmul(self, a: Value, b: Value) -> Value:
        if not (is_complex(a) or is_complex(b)):
            return super().matmul(a, b)
        (c, d), (e, f) = (map(self.copy, self.parts(each)) for each in (a, b))
        product = super(ComplexGraph, self).matmul
        return self.complex(product(c, e) - product(d, f), product(c, f) + product(d, e))

    def convolve(self, kind: str, a: Value, b: Value, shape: Sequence[int], stride: Sequence[int],
                 padding: Sequence[int], dilation: Sequence[int], groups: int) -> Value:
        if a.dtype.kind != "c":
            return super().convolve(kind, a, b, shape, stride, padding, dilation, groups)
        pairs = [[self.copy(each) for each in self.parts(x)] for x in (a, b)]
        (p, q), (r, s) = [[super(InterleavedGraph, self).convolve(kind, x, y, shape, stride, padding, dilation, groups)
                           for y in pairs[1]] for x in pairs[0]]
        return self.complex(p - s, q + r)

    def extern(self, kernel: Any, args: Sequence[Value], outputs: Sequence[tuple[tuple[int, ...], np.dtype]]
              ) -> list[Value]:
        if not any(map(is_complex, args)):
            return super().extern(kernel, args, outputs)
        if not isinstance(kernel, ExternKernel) or kernel.name not in _INDEXING:
            raise Unsupported(f"{kernel} of complex numbers")
        reals = [self.pairs(args[0]), self.for_pairs(args[1]), *args[2:]]
        made = super().extern(kernel, reals, [((*shape, 2), real_dtype(dtype)) if dtype.kind == "c" else (shape, dtype)
                                              for shape, dtype in outputs])
        return [self.from_memory(each, shape) if dtype.kind == "c" else each
                for each, (shape, dtype) in zip(made, outputs, strict=True)]

    # ----- memory of results -----

    def as_reals(self, value: Value) -> Value:
        """A complex value as real numbers, flat, in row-major order: what a program returns."""
        dense = self.pairs(value)
        return self.reshape(dense, (2 * value.size,))


__all__ = ["InterleavedGraph"]
