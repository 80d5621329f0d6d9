"""Kernels that draw a number for each element of arrays of parameters, from a stream of the element's thread.

A thread's number is the element's: Poisson, gamma. Of binomial samples a thread draws four, one after another.
Sources: Knuth, "Seminumerical algorithms", section 3.4.1 (Poisson, small rates); Hörmann, "The transformed rejection
method for generating Poisson random variables" (1993) and "The generation of binomial random variates" (1993);
Marsaglia and Tsang, "A simple method for generating gamma variables" (2000), in the arithmetic of ATen's
`Distributions.h`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from ....dtypes import NARROW
from ...scalar.scalar_ir import BOOL, Node, apply, cast, constant, floor, fma, select, sqrt
from ..cuda_math import double_precision, single_precision
from ..cuda_math.constants import F32, F64, I64
from ..kernel_ir import Kernel, KernelBuilder
from ..statements import Local
from .streams import Seed, Stream, normal_doubles, thread_number

THREADS = 256
#: elements of a binomial kernel's thread, and threads of its blocks
BINOMIAL_ELEMENTS, BINOMIAL_THREADS = 8, 128
#: rates from which on Poisson numbers are made otherwise
_LARGE_RATE, _HUGE_RATE = 64.0, 4000.0
#: rounds to the dtype of narrow arrays
Rounding = Callable[[Node], Node]
_STIRLING_TAIL = (0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
                  0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287)


def _number(value: float, like: Node) -> Node:
    return constant(value, like.dtype)


def _log(x: Node) -> Node:
    return double_precision.log(x) if x.dtype == F64 else single_precision.log(x)


def _true(b: KernelBuilder) -> Local:
    return b.local(constant(True, BOOL))


# ----- Poisson -----

def _poisson(b: KernelBuilder, stream: Stream, rate: Node) -> Node:
    wide = cast(rate, F64)
    result = b.local(constant(0.0, F64))
    with b.when(wide < _LARGE_RATE):
        product = b.local(single_precision.exp(cast(wide, F32)))
        count = b.local(constant(0.0, F64))
        going = _true(b)
        with b.loop_while(going):
            b.set(count, b.get(count) + 1.0)
            b.set(product, b.get(product) * stream.uniform())
            b.set(going, b.get(product) > 1.0)
        b.set(result, b.get(count) - 1.0)
    with b.when((wide >= _LARGE_RATE) & apply("not", wide > _HUGE_RATE)):
        b.set(result, _transformed_rejection(b, stream, wide))
    with b.when(wide > _HUGE_RATE):
        words = [stream.word() for _ in range(4)]
        spread = fma(normal_doubles(words)[0], sqrt(wide), wide) + 0.5
        b.set(result, floor(select(spread > 0.0, spread, constant(0.0, F64))))
    return b.get(result)


def _transformed_rejection(b: KernelBuilder, stream: Stream, rate: Node) -> Node:
    """A Poisson number of a rate from 10 on: Hörmann's PTRS."""
    width = fma(sqrt(rate), constant(2.53, F64), constant(0.931, F64))
    a = fma(width, constant(0.02483, F64), constant(-0.059, F64))
    inverse_alpha = constant(1.1239, F64) + constant(1.1328, F64) / (width - 3.4)
    accepted = constant(0.9277, F64) - constant(3.6224, F64) / (width - 2.0)
    log_rate = double_precision.log(rate)
    result, going = b.local(constant(0.0, F64)), _true(b)
    with b.loop_while(going):
        u = cast(stream.uniform(), F64) - 0.5
        v = cast(stream.uniform(), F64)
        us = constant(0.5, F64) - apply("abs", u)
        k = floor((a * 2.0 / us + width) * u + rate + 0.43)
        inside = (us >= 0.07) & (v <= accepted)
        left = double_precision.log(v) + double_precision.log(inverse_alpha)
        left = left - double_precision.log(a / (us * us) + width)
        right = k * log_rate - rate - apply("lgamma", k + 1.0)
        possible = apply("not", k < 0.0) & apply("not", (us < 0.013) & (v > us))
        b.set(result, k)
        b.set(going, ~(inside | (possible & (left <= right))))
    return b.get(result)


# ----- gamma -----

def _gamma(b: KernelBuilder, stream: Stream, alpha: Node, narrow: np.dtype | None) -> Node:
    """A gamma number of rate 1, in float64 or float32; `narrow`: the dtype that sums of parameters are rounded to."""
    def rounded(x: Node) -> Node:
        return x if narrow is None else cast(cast(x, narrow), F32)

    kind = alpha.dtype
    boosted = alpha < 1.0
    scale = b.local(_number(1.0, alpha))
    with b.when(boosted):
        u = cast(stream.uniform(), kind)
        b.set(scale, apply("pow", _number(1.0, alpha) - u, _number(1.0, alpha) / alpha))
    shape = select(boosted, rounded(alpha + 1.0), alpha)
    third = float(np.float32(1) / np.float32(3))
    d = shape - third
    c = _number(1.0, alpha) / sqrt(d * 9.0)
    result, going = b.local(_number(0.0, alpha)), b.local(apply("ne", alpha, 0.0))
    with b.loop_while(going):
        x = b.local(_number(0.0, alpha))
        y = b.local(_number(0.0, alpha))
        again = _true(b)
        with b.loop_while(again):
            z = cast(stream.normal(), kind)
            b.set(x, z)
            b.set(y, fma(c, z, _number(1.0, alpha)))
            b.set(again, b.get(y) <= 0.0)
        z, base = b.get(x), b.get(y)
        v = base * base * base
        u = _number(1.0, alpha) - cast(stream.uniform(), kind)
        square = z * z
        quick = u < fma(-(square * float(np.float32(0.0331))), square, _number(1.0, alpha))
        slow = _log(u) < fma(square, _number(0.5, alpha), d * (_number(1.0, alpha) - v + _log(v)))
        b.set(result, b.get(scale) * d * v)
        b.set(going, ~(quick | slow))
    return b.get(result)


def _standard_gamma(b: KernelBuilder, stream: Stream, alpha: Node, dtype: np.dtype) -> Node:
    made = _gamma(b, stream, alpha, dtype if dtype in NARROW else None)
    least = {4: 2.0**-126, 8: 2.0**-1022}.get(dtype.itemsize, 2.0**-14 if dtype.kind == "f" else 2.0**-126)
    return select(_number(least, made) > made, _number(least, made), made)


# ----- binomial -----

def _stirling_tail(b: KernelBuilder, k: Node) -> Node:
    """The difference of log k! and Stirling's formula."""
    wide = cast(k, F64)
    table = constant(_STIRLING_TAIL[9], F64)
    for i in range(8, -1, -1):
        table = select(wide < i + 1.0, constant(_STIRLING_TAIL[i], F64), table)
    above = k + 1.0
    square = cast(above * above, F64)
    inner = constant(1.0 / 360, F64) - constant(1.0 / 1260, F64) / square
    series = (constant(1.0 / 12, F64) - inner / square) / cast(above, F64)
    return cast(select(k <= 9.0, table, series), k.dtype)


def _random_bits(stream: Stream) -> Node:
    """A float32 in [0, 1) of the lower 24 bits of a word."""
    return cast(stream.word() & 0xFFFFFF, F32) * 2.0**-24


def _inversion(b: KernelBuilder, stream: Stream, count: Node, p: Node, rounded: Rounding) -> Node:
    """The successes, by waiting times."""
    kind = count.dtype
    failing = apply("log1p", -p) if kind == F64 else single_precision.log1p(-p)
    waited, found, going = b.local(_number(0.0, count)), b.local(_number(0.0, count)), _true(b)
    with b.loop_while(going):
        wait = apply("ceil", _log(cast(_random_bits(stream), kind)) / failing)
        total = b.get(waited) + wait
        b.set(waited, total)
        over = total > count
        b.set(found, select(over, b.get(found), rounded(b.get(found) + 1.0)))
        b.set(going, ~over)
    return b.get(found)


def _rejection(b: KernelBuilder, stream: Stream, count: Node, p: Node, rounded: Rounding) -> Node:
    """The successes, by transformed rejection; constants are float64, as in ATen."""
    kind = count.dtype

    def wide(value: float | Node) -> Node:
        return cast(value, F64) if isinstance(value, Node) else constant(value, F64)

    def narrow(value: Node) -> Node:
        return cast(value, kind)

    one = _number(1.0, count)
    failing, tried = rounded(one - p), rounded(count + 1.0)
    deviation = sqrt(rounded(rounded(count * p) * failing))
    width = narrow(fma(wide(2.53), wide(deviation), wide(1.15)))
    a = narrow(fma(wide(0.01), wide(p), fma(wide(0.0248), wide(width), wide(-0.0873))))
    c = narrow(fma(wide(count), wide(p), wide(0.5)) if kind == F64 else wide(rounded(count * p)) + 0.5)
    accepted = narrow(wide(0.92) - wide(4.2) / wide(width))
    ratio = rounded(p / failing)
    alpha = narrow((wide(2.83) + wide(5.1) / wide(width)) * wide(deviation))
    m = floor(rounded(tried * p))
    result, going = b.local(_number(0.0, count)), _true(b)
    with b.loop_while(going):
        u = narrow(wide(cast(_random_bits(stream), kind)) - 0.5)
        v = cast(_random_bits(stream), kind)
        us = narrow(wide(0.5) - wide(apply("abs", u)))
        k = rounded(floor(fma(a * 2.0 / us + width, u, c)))
        left_over = rounded(count - k)
        above_left = rounded(left_over + 1.0)
        possible = apply("not", (k < 0.0) | (k > count))
        quick = (wide(us) >= 0.07) & (v <= accepted)
        left = _log(v * alpha / (a / (us * us) + width))
        above = count - m + 1.0
        first, second = _log((m + 1.0) / (ratio * above)), _log(above / above_left)
        third = _log(ratio * above_left / rounded(k + 1.0))
        if kind == F64:
            total = fma(tried, second, (m + 0.5) * first)
        else:
            total = fma(wide(m) + 0.5, wide(first), wide(tried * second))
        total = fma(wide(k) + 0.5, wide(third), total)
        total = total + wide(_stirling_tail(b, m)) + wide(_stirling_tail(b, count - m))
        total = total - wide(_stirling_tail(b, k)) - wide(_stirling_tail(b, left_over))
        b.set(result, k)
        b.set(going, ~(possible & (quick | (left <= narrow(total)))))
    return b.get(result)


def _binomial(b: KernelBuilder, stream: Stream, count: Node, p: Node, dtype: np.dtype) -> Node:
    def rounded(x: Node) -> Node:
        return cast(cast(x, dtype), F32) if dtype in NARROW else x

    swapped = p > 0.5
    q = select(swapped, rounded(cast(constant(1.0, F64) - cast(p, F64), p.dtype)), p)
    result = b.local(_number(0.0, count))
    plain = (count > 0.0) & (p > 0.0) & (p < 1.0)
    large = rounded(count * q) >= 10.0
    with b.when(plain & large):
        b.set(result, _rejection(b, stream, count, q, rounded))
    with b.when(plain & ~large):
        b.set(result, _inversion(b, stream, count, q, rounded))
    drawn = b.get(result)
    drawn = select(swapped, rounded(count - drawn), drawn)
    whole = select(apply("not", p < 1.0) & apply("eq", p, p), count, drawn)
    unknown = apply("ne", p, p)
    empty = (count <= 0.0) | (p <= 0.0)
    return select(empty, _number(0.0, count), select(unknown, _number(float("nan"), count), whole))


# ----- kernels -----

def _opmath(x: Node) -> Node:
    return cast(x, F32) if x.dtype in NARROW else x


@lru_cache(64)
def sampler(distribution: str, dtype: np.dtype, captured: bool = False) -> Kernel:
    """The kernel that draws a number for each element of dense arrays.

    Its buffers are the result, the parameters, the state where it is captured; its scalars those of `Seed`, then the
    number of elements.

    Args:
        distribution: "poisson", "standard_gamma", "binomial".
        dtype: of all arrays.
        captured: whether it is part of a CUDA graph.
    """
    is_binomial = distribution == "binomial"
    b = KernelBuilder(f"draw_{distribution}", BINOMIAL_THREADS if is_binomial else THREADS)
    out = b.buffer(dtype)
    parameters = [b.buffer(dtype) for _ in range(2 if is_binomial else 1)]
    seed = Seed(b, captured)
    total = b.scalar(I64)
    subsequence = thread_number(b)
    stream = Stream(b, seed, subsequence)
    sample: Callable[[Sequence[Node]], Node] = {
        "poisson": lambda given: _poisson(b, stream, given[0]),
        "standard_gamma": lambda given: _standard_gamma(b, stream, given[0], dtype),
        "binomial": lambda given: _binomial(b, stream, given[0], given[1], dtype)}[distribution]

    def element(place: Node) -> None:
        with b.when(place < total):
            value = sample([_opmath(b.load(each, place)) for each in parameters])
            b.store(out, place, cast(value, F32) if dtype in NARROW else value)

    if is_binomial:
        first = cast(b.block, I64) * (BINOMIAL_THREADS * BINOMIAL_ELEMENTS) + cast(b.thread, I64)
        with b.loop(0, BINOMIAL_ELEMENTS) as i:
            element(first + cast(i, I64) * BINOMIAL_THREADS)
    else:
        element(subsequence)
    return b.kernel()


@lru_cache(64)
def bernoulli(dtype: np.dtype, probability: np.dtype, captured: bool = False) -> Kernel:
    """The kernel that draws 1 with the probabilities in an array, four neighbouring elements a thread.

    Its buffers are the result and the probabilities, float32 or float64, dense; its scalars as for `sampler`.
    """
    b = KernelBuilder("draw_bernoulli_each", 512)
    out, given = b.buffer(dtype), b.buffer(probability)
    seed = Seed(b, captured)
    total = b.scalar(I64)
    subsequence = thread_number(b)
    for k, word in enumerate(seed.words(subsequence, constant(0, np.uint64))):
        place = subsequence * 4 + k
        inside = place < total
        unit = fma(cast(word, F32), constant(2.0**-32, F32), constant(2.0**-33, F32))
        b.store(out, place, cast(cast(cast(unit, probability) <= b.load(given, place, inside), F32), dtype), inside)
    return b.kernel()


__all__ = ["BINOMIAL_ELEMENTS", "BINOMIAL_THREADS", "THREADS", "bernoulli", "sampler"]
