"""Fourier transforms over IR values: products with matrices of roots of unity, of factors of the length.

A length n₁n₂ is transformed as n₂ columns of length n₁, a product with roots of unity, and n₁ rows of length n₂
(Cooley and Tukey). All of it are products and elementwise operations, which have kernels on all processors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....ir.graph.complex_graph import ComplexGraph, Pair
from ....ir.graph.value import Unsupported, Value
from ....ir.lowering.complex_numbers import ComplexNumbers
from ....shapes import wrap_dim

#: lengths up to here are one product
DIRECT = 128
#: the greatest prime factor of a length: its matrix has (2n)² elements
MAX_FACTOR = 500


class Fourier(ComplexNumbers):
    """Primitives behind `torch.fft`."""

    graph: ComplexGraph

    def fft_c2c(self, x: Value, dim: Sequence[int], normalization: int, forward: bool) -> Value:
        pair = self.graph.parts(x)
        for d in dim:
            pair = self._along(pair, d, x.ndim, -1 if forward else 1)
        return self._scaled(pair, [x.shape[d] for d in dim], normalization)

    def fft_r2c(self, x: Value, dim: Sequence[int], normalization: int, onesided: bool) -> Value:
        *others, last = (wrap_dim(d, x.ndim) for d in dim)
        pair = self._along((x, None), last, x.ndim, -1)
        n = x.shape[last]
        if onesided:
            first, second = (self.graph.slice(each, last, 0, n // 2 + 1) for each in pair)
            pair = first, second
        for d in others:
            pair = self._along(pair, d, x.ndim, -1)
        return self._scaled(pair, [x.shape[d] for d in dim], normalization)

    def fft_c2r(self, x: Value, dim: Sequence[int], normalization: int, last_dim_size: int) -> Value:
        g, n = self.graph, last_dim_size
        *others, last = (wrap_dim(d, x.ndim) for d in dim)
        pair = g.parts(x)
        for d in others:
            pair = self._along(pair, d, x.ndim, 1)
        half = n // 2 + 1
        if x.shape[last] != half:
            raise Unsupported(f"a spectrum of {x.shape[last]} elements of a signal of {n}")
        real, imag = (self._last(each, last) for each in pair)
        mirrored = (n - 1) // 2  # elements 1 to this one stand for their mirror images, too
        tail = [g.copy(self.flip(g.slice(each, x.ndim - 1, 1, mirrored), (x.ndim - 1,))) if mirrored else None
                for each in (real, imag)]
        whole_real = real if tail[0] is None else g.cat([g.copy(real), tail[0]], x.ndim - 1)
        whole_imag = imag if tail[1] is None else g.cat([g.copy(imag), -tail[1]], x.ndim - 1)
        # the imaginary parts of elements that are their own mirror images do not count
        counted = np.ones(n, x.dtype.char.lower())
        counted[0] = 0
        if n % 2 == 0:
            counted[n // 2] = 0
        whole_imag = whole_imag * g.constant(counted)
        result = self._back(self._transformed((whole_real, whole_imag), n, 1)[0], last)
        return result * self._factor([*(x.shape[d] for d in others), n], normalization)

    def fft_r2c_adjoint(self, x: Value, dim: Sequence[int], normalization: int, last_dim_size: int) -> Value:
        scaled = self._mirror_scaled(x, dim[-1], last_dim_size, 0.5)
        return self.fft_c2r(scaled, dim, normalization, last_dim_size)

    def fft_c2r_adjoint(self, x: Value, dim: Sequence[int], normalization: int) -> Value:
        return self._mirror_scaled(self.fft_r2c(x, dim, normalization, True), dim[-1], x.shape[dim[-1]], 2.0)

    def _mirror_scaled(self, x: Value, axis: int, n: int, factor: float) -> Value:
        """Half of a spectrum, its elements that stand for their mirror images too times a factor."""
        g, axis = self.graph, wrap_dim(axis, x.ndim)
        real, imag = g.parts(x)
        scale = np.ones(x.shape[axis], real.dtype)
        scale[1:1 + n - x.shape[axis]] = factor
        along = g.constant(scale.reshape(-1, *(1 for _ in range(x.ndim - 1 - axis))))
        return g.complex(real * along, imag * along)

    def _factor(self, sizes: Sequence[int], normalization: int) -> float:
        return math.prod(sizes) ** (-0.5 * normalization)

    def _scaled(self, pair: Pair, sizes: Sequence[int], normalization: int) -> Value:
        factor = self._factor(sizes, normalization)
        return self.graph.complex(*(each if factor == 1 else each * factor for each in pair))

    # ----- one dimension -----

    def _last(self, x: Value, axis: int) -> Value:
        """The value with a dimension moved to the end."""
        return self.graph.permute(x, [*(d for d in range(x.ndim) if d != axis), axis])

    def _back(self, x: Value, axis: int) -> Value:
        """The value with the last dimension moved to a place."""
        return self.graph.permute(x, [*range(axis), x.ndim - 1, *range(axis, x.ndim - 1)])

    def _along(self, pair: tuple[Value, Value | None], dim: int, ndim: int, sign: int) -> Pair:
        axis = wrap_dim(dim, ndim)
        real, imag = pair
        moved = self._last(real, axis), None if imag is None else self._last(imag, axis)
        first, second = (self._back(each, axis) for each in self._transformed(moved, real.shape[axis], sign))
        return first, second

    def _transformed(self, pair: tuple[Value, Value | None], n: int, sign: int) -> Pair:
        """The transform along the last dimension, of exponents with a sign; no imaginary part is zeros."""
        g = self.graph
        real = pair[0]
        if real.dtype.name not in ("float32", "float64") or not real.size:
            raise Unsupported(f"a transform of {real.dtype}, or of no elements")
        lead = real.shape[:-1]
        rows = math.prod(lead)
        first = _factor_of(n)
        if first == n:
            return self._product(pair, n, sign)
        second = n // first
        # x[second * i + j]: columns i are transformed first
        split = [None if each is None else g.permute(g.reshape(g.copy(each), (rows, first, second)), (0, 2, 1))
                 for each in pair]
        assert split[0] is not None
        a, b = self._product((split[0], split[1]), first, sign)  # (rows, j, k)
        angles = 2 * np.pi / n * np.arange(second)[:, None] * np.arange(first)
        c, s = (g.constant(each.astype(real.dtype)) for each in (np.cos(angles), sign * np.sin(angles)))
        a, b = a * c - b * s, a * s + b * c
        a, b = (g.permute(each, (0, 2, 1)) for each in (a, b))  # (rows, k, j)
        a, b = self._transformed((a, b), second, sign)  # (rows, k, l): element k + first * l
        a, b = (g.reshape(g.copy(g.permute(each, (0, 2, 1))), (*lead, n)) for each in (a, b))
        return a, b

    def _product(self, pair: tuple[Value, Value | None], n: int, sign: int) -> Pair:
        """The transform along the last dimension as one product of real matrices."""
        g = self.graph
        real, imag = pair
        angles = 2 * np.pi / n * (np.arange(n)[:, None] * np.arange(n) % n)
        c, s = np.cos(angles), sign * np.sin(angles)
        matrix = np.concatenate((c, s), 1)
        if imag is not None:
            matrix = np.concatenate((matrix, np.concatenate((-s, c), 1)), 0)
        rows = real.size // n
        parts = [g.reshape(g.copy(each), (rows, n)) for each in pair if each is not None]
        both = g.matmul(g.cat(parts, 1), g.constant(matrix.astype(real.dtype)))
        first, second = (g.reshape(g.copy(g.slice(both, 1, k * n, n)), real.shape) for k in (0, 1))
        return first, second


def _factor_of(n: int) -> int:
    """The length itself if it is transformed at once, else its greatest divisor up to `DIRECT`.

    Raises:
        Unsupported: it has a prime factor that is too large.
    """
    if n <= DIRECT:
        return n
    divisors = [d for d in range(2, math.isqrt(n) + 1) if n % d == 0]
    found = [d for d in (*divisors, *(n // d for d in divisors)) if d <= DIRECT]
    if found:
        return max(found)
    if n <= MAX_FACTOR:
        return n
    raise Unsupported(f"a Fourier transform of length {n}, which has a prime factor above {MAX_FACTOR}")


__all__ = ["Fourier"]
