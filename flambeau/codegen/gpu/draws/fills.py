"""Kernels that fill arrays with independent numbers of one distribution.

T threads draw blocks of words; the numbers of a thread's block go to the elements t, t + T, t + 2 T, ...
Source of the transforms: ATen's `DistributionTemplates.h`, `TransformationHelper.h`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ....dtypes import BFLOAT16, HALF, NARROW
from ...scalar.scalar_ir import BOOL, Node, apply, cast, constant, fma, select
from ..coordinates import coordinates, offset
from ..cuda_math import double_precision, single_precision
from ..cuda_math.constants import F32, F64, I32, I64, U32, U64
from ..kernel_ir import Kernel, KernelBuilder
from .streams import (
    Seed,
    normal_doubles,
    normal_singles,
    thread_number,
    unit_doubles,
    unit_single,
    wide_words,
)

THREADS = 256


class Fill(NamedTuple):
    """A kernel that fills an array.

    Its scalars are those of `Seed`, then the number of elements, that of threads, that of blocks of words of each
    thread, and the parameters of the distribution, in `computed`.

    Attributes:
        kernel: it.
        per_block: the numbers that a block of words makes.
        computed: the dtype of the parameters.
    """

    kernel: Kernel
    per_block: int
    computed: np.dtype


#: values of words, of the distribution's parameters, in the dtype of the elements
Transform = Callable[[list[Node], Sequence[Node], np.dtype], list[Node]]


def units(words: list[Node], dtype: np.dtype) -> list[Node]:
    """Numbers over (0, 1] of a block of words: two float64, or four float32 for other dtypes."""
    return unit_doubles(words) if dtype == F64 else [unit_single(word) for word in words]


def _normals(words: list[Node], dtype: np.dtype) -> list[Node]:
    if dtype == F64:
        return normal_doubles(words)
    return [*normal_singles(words[0], words[1]), *normal_singles(words[2], words[3])]


def _log(x: Node) -> Node:
    return double_precision.log(x) if x.dtype == F64 else single_precision.fast_log(x)


def _uniform(words: list[Node], given: Sequence[Node], dtype: np.dtype) -> list[Node]:
    """Parameters: low, high, and their distance in the elements' dtype."""
    low, high, distance = given
    found = []
    for unit in units(words, dtype):
        value = fma(unit, distance, low)
        if dtype in NARROW:
            value = cast(cast(value, dtype), F32)
        found.append(select(apply("eq", value, high), low, value))
    return found


def _normal(words: list[Node], given: Sequence[Node], dtype: np.dtype) -> list[Node]:
    """Parameters: mean, standard deviation."""
    mean, deviation = given
    return [fma(z, deviation, mean) for z in _normals(words, dtype)]


def _log_normal(words: list[Node], given: Sequence[Node], dtype: np.dtype) -> list[Node]:
    """Parameters: mean and standard deviation of the logarithms."""
    exp = double_precision.exp if dtype == F64 else single_precision.fast_exp
    return [exp(z) for z in _normal(words, given, dtype)]


def _exponential(words: list[Node], given: Sequence[Node], dtype: np.dtype) -> list[Node]:
    """Parameter: -1 over the rate."""
    half = (2.0**-52 if dtype == F64 else 2.0**-23) / 2
    return [given[0] * select(unit >= 1 - half, constant(-half, unit.dtype), _log(unit))
            for unit in units(words, dtype)]


def _cauchy(words: list[Node], given: Sequence[Node], dtype: np.dtype) -> list[Node]:
    """Parameters: median, scale."""
    median, scale = given
    eps = 2.0**-52 if dtype == F64 else 2.0**-23
    found = []
    for unit in units(words, dtype):
        inside = select(unit > 1 - eps, constant(1 - eps, unit.dtype), unit)
        inside = select(inside < eps, constant(eps, unit.dtype), inside)
        angle = (inside - 0.5) * math.pi
        found.append(fma(scale, apply("tan", angle) if dtype == F64 else single_precision.fast_tan(angle), median))
    return found


def _geometric(words: list[Node], given: Sequence[Node], dtype: np.dtype) -> list[Node]:
    """Parameter: the probability of a success; of float64 its complement's logarithm."""
    found = []
    for unit in units(words, dtype):
        failing = given[0] if dtype == F64 else single_precision.fast_log(constant(1.0, F32) + -given[0])
        found.append(apply("ceil", _log(unit) / failing))
    return found


def _bernoulli(words: list[Node], given: Sequence[Node], dtype: np.dtype) -> list[Node]:
    """Parameter: the probability of 1."""
    return [cast(unit < given[0], unit.dtype) for unit in units(words, dtype)]


def _as_integer(value: Node, dtype: np.dtype) -> Node:
    """An unsigned number as an element: by way of int64."""
    signed = cast(value, I64)
    return cast(cast(signed, F32), dtype) if dtype in NARROW else cast(signed, dtype)


def _integers(words: list[Node], given: Sequence[Node], dtype: np.dtype) -> list[Node]:
    """Parameters: the number of integers, at least 2^28 (0: 2^64), and the lowest; both uint64."""
    size, low = given
    return [_as_integer(select(apply("eq", size, 0), value, _remainder(value, size)) + low, dtype)
            for value in wide_words(words)]


def _few_integers(words: list[Node], given: Sequence[Node], dtype: np.dtype) -> list[Node]:
    """Parameters: the number of integers, below 2^28, and the lowest; both uint64."""
    size, low = cast(given[0], U32), given[1]
    return [_as_integer(cast(_remainder(word, size), U64) + low, dtype) for word in words]


def _remainder(value: Node, size: Node) -> Node:
    return value - value / size * size


def _any_integers(words: list[Node], given: Sequence[Node], dtype: np.dtype) -> list[Node]:
    """All integers that are not negative and that the dtype represents exactly."""
    if dtype == BOOL:
        return [apply("ne", word & 1, 0) for word in words]
    if dtype.kind in "iu":
        count = int(np.iinfo(dtype).max) + 1
        values = wide_words(words) if dtype.itemsize == 8 else words
        if count == 2**values[0].dtype.itemsize * 2**(7 * values[0].dtype.itemsize):
            return [cast(value, dtype) for value in values]
        return [cast(value & (count - 1), dtype) for value in values]
    digits = {HALF: 11, BFLOAT16: 8, F32: 24, F64: 53}[dtype]
    values = wide_words(words) if dtype == F64 else words
    return [_as_integer(cast(_remainder(value, constant(2**digits + 1, value.dtype)), U64), dtype)
            for value in values]


#: distribution -> its transform, the number of its parameters
_DISTRIBUTIONS: dict[str, tuple[Transform, int]] = {
    "uniform": (_uniform, 3), "normal": (_normal, 2), "log_normal": (_log_normal, 2), "exponential": (_exponential, 1),
    "cauchy": (_cauchy, 2), "geometric": (_geometric, 1), "bernoulli": (_bernoulli, 1), "integers": (_integers, 2),
    "few_integers": (_few_integers, 2), "any_integers": (_any_integers, 0)}


@lru_cache(512)
def fill(distribution: str, dtype: np.dtype, extents: tuple[int, ...] = (), strides: tuple[int, ...] = (),
         captured: bool = False) -> Fill:
    """The kernel that fills an array.

    Args:
        distribution: a key of the table.
        dtype: of the elements.
        extents: of an array with gaps, innermost first; none: the array is dense.
        strides: of an array with gaps, in elements.
        captured: whether it is part of a CUDA graph (`Seed`).
    """
    transform, count = _DISTRIBUTIONS[distribution]
    computed = U64 if "integers" in distribution else F64 if dtype == F64 else F32
    b = KernelBuilder(f"draw_{distribution}", THREADS)
    out = b.buffer(dtype)
    seed = Seed(b, captured)
    total, threads, blocks = b.scalar(I64), b.scalar(I64), b.scalar(I32)
    given = [b.scalar(computed) for _ in range(count)]
    subsequence = thread_number(b)
    per_block = 0
    with b.loop(0, blocks) as number:
        values = transform(seed.words(subsequence, cast(number, U64)), given, dtype)
        per_block = len(values)
        first = subsequence + cast(number, I64) * threads * per_block
        for k, value in enumerate(values):
            linear = first + threads * k if k else first
            at = offset(coordinates(linear, extents), strides, constant(0, I64)) if extents else linear
            b.store(out, at, value, linear < total)
    return Fill(b.kernel(), per_block, computed)


__all__ = ["THREADS", "Fill", "fill", "units"]
