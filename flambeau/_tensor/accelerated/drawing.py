"""Random numbers drawn on a device: the parameters of a launch, and the part of the generator's sequence it takes.

Source: ATen's `cuda/DistributionTemplates.h`, which decides how many threads draw, and by how much the offset grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import dtypes
from ...backends.cuda_devices import current_runtime
from ...backends.cuda_devices.array import DeviceArray
from ...codegen.gpu.draws import fills
from ...dtypes import NARROW
from ...kernels.philox import PhiloxEngine

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
#: complex dtypes -> that of their parts
_PARTS: dict[np.dtype, np.dtype] = {np.dtype(np.complex64): _F32, np.dtype(np.complex128): _F64,
                                    dtypes.COMPLEX32: np.dtype(np.float16)}
#: the largest index and offset in bytes of one launch
_MOST = 2**31 - 1
THREADS = fills.THREADS


class Part(NamedTuple):
    """A part of a generator's sequence: what the kernels' `Seed` takes.

    Attributes:
        buffers: the memory of the state, of a graph that is being captured.
        scalars: the seed and the number of the first block of words, or the distance of that from the graph's first.
    """

    buffers: tuple[Any, ...]
    scalars: tuple[int, ...]

    @property
    def captured(self) -> bool:
        """Whether it is of a graph."""
        return bool(self.buffers)


def taken(engine: PhiloxEngine, words: int) -> Part:
    """The next part of a generator's sequence, of so many words of each thread."""
    if engine.graph is not None:
        return Part((engine.graph.place,), (engine.graph.advance(words) // 4,))
    return Part((), (engine.initial_seed, engine.advance(words) // 4))


def start(name: str, kernel: Any, blocks: int | tuple[int, int, int], out: Sequence[DeviceArray],
          reads: Sequence[DeviceArray], part: Part, scalars: Sequence[Any]) -> None:
    """Launch a kernel that draws.

    Args:
        name: of the launch.
        blocks: of its grid.
        out: the arrays that it writes, its first buffers.
        reads: the arrays that it reads, the next ones.
        scalars: what follows those of `Seed`.
    """
    runtime = current_runtime()
    grid = blocks if isinstance(blocks, tuple) else (blocks, 1, 1)
    places = [(each.memory, each.byte_offset) for each in (*out, *reads)]
    runtime.launch(name, out[0].torch_device.index, reads, out, lambda: runtime.run_kernel(
        kernel, grid, [*places, *part.buffers], (*part.scalars, *scalars)))


# ----- fills -----

class Draw:
    """Numbers of a distribution that are not drawn yet.

    Args:
        device: the index of the device.
        distribution, parameters: of `fills.fill`.
        count: of the numbers.
        dtype: of the numbers.
        engine: the generator's.
    """

    __slots__ = ("count", "device", "distribution", "dtype", "engine", "parameters")

    def __init__(self, device: int, engine: PhiloxEngine, distribution: str, parameters: Sequence[Any], count: int,
                 dtype: np.dtype) -> None:
        self.device, self.engine, self.count, self.dtype = device, engine, count, dtype
        self.distribution, self.parameters = distribution, parameters

    def reshape(self, *shape: Any) -> DeviceArray:
        """The numbers, in a new array."""
        size = shape[0] if len(shape) == 1 and shape[0].__class__ is tuple else shape
        made: DeviceArray = current_runtime().empty(self.device, size if size != (-1,) else (self.count,), self.dtype)
        self.into(made)
        return made

    def placed(self, like: np.ndarray) -> DeviceArray:
        """The numbers, in a new array with the shape and strides of another."""
        made: DeviceArray = current_runtime().empty(self.device, like.shape, self.dtype, like.strides)
        self.into(made)
        return made

    def into(self, target: DeviceArray) -> None:
        """Draw the numbers into an array of any strides, in the order that its elements have in memory."""
        if not target.size:
            return
        part = _PARTS.get(target.dtype)
        dims = [(n, s) for n, s in zip(target.shape, target.strides, strict=True) if n > 1]
        dtype = target.dtype
        if part is not None:
            dims.append((2, part.itemsize))
            dtype = part
        _fill(self, target, 0, _collapsed(dims), dtype)


def _collapsed(dims: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """(extent, stride in bytes) of dimensions, by increasing strides, those merged that follow each other."""
    found: list[tuple[int, int]] = []
    for n, stride in sorted(dims, key=lambda each: each[1]):
        if found and stride == found[-1][0] * found[-1][1]:
            found[-1] = found[-1][0] * n, found[-1][1]
        else:
            found.append((n, stride))
    return found


def _fill(draw: Draw, target: DeviceArray, first: int, dims: list[tuple[int, int]], dtype: np.dtype) -> None:
    """Fill a part of an array.

    Args:
        first: the distance in bytes of the part's first element from the array's.
    """
    count = math.prod(n for n, _ in dims)
    size = dtype.itemsize
    runtime, engine = current_runtime(), draw.engine
    strided = len(dims) > 1 or (bool(dims) and dims[0][1] != size)
    extents = tuple(n for n, _ in dims) if strided else ()
    strides = tuple(s // size for _, s in dims) if strided else ()
    fill = fills.fill(draw.distribution, dtype, extents, strides, engine.graph is not None)
    threads = THREADS * min(-(-count // THREADS), engine.blocks)
    blocks = (count - 1) // (threads * fill.per_block) + 1
    part = taken(engine, 4 * blocks)
    if count > _MOST or sum((n - 1) * s for n, s in dims) >= _MOST:  # halves, each of its own part of the sequence
        longest = max(range(len(dims)), key=lambda i: (dims[i][0] - 1) * dims[i][1])
        n, stride = dims[longest]
        for begin, extent in ((0, n // 2), (n // 2, n - n // 2)):
            _fill(draw, target, first + begin * stride, _collapsed([
                *dims[:longest], (extent, stride), *dims[longest + 1:]]), dtype)
        return
    place = target.memory, target.byte_offset + first
    runtime.launch(f"draw_{draw.distribution}", draw.device, (), (target,), lambda: runtime.run_kernel(
        fill.kernel, (threads // THREADS, 1, 1), [place, *part.buffers],
        (*part.scalars, count, threads, blocks, *draw.parameters)))


# ----- distributions: the names and arguments of `kernels.random` -----

def _floats(dtype: np.dtype) -> np.dtype:
    return _PARTS.get(dtype, dtype)


def _rounded(value: float, dtype: np.dtype) -> float:
    """A number rounded to a dtype, as a Python float."""
    if dtype in NARROW:
        return float(dtypes.widen(dtypes.cast(np.array([value], np.float32), dtype))[0])
    return float(dtype.type(value))


def uniform(generator: Any, n: int, dtype: np.dtype, low: float = 0.0, high: float = 1.0) -> Draw:
    """n samples of the uniform distribution over [low, high)."""
    from ...kernels.random.interval import check_bounds

    kind = _floats(dtype)
    check_bounds(low, high, kind)
    first, last = _rounded(low, kind), _rounded(high, kind)
    return _draw(generator, "uniform", (first, last, _rounded(last - first, kind)), n, dtype)


def normal(generator: Any, n: int, dtype: np.dtype, mean: float = 0.0, std: float = 1.0, contiguous: bool = True
           ) -> Draw:
    """n samples of a normal distribution; of complex dtypes the variance is split over both parts."""
    if not std >= 0.0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    return _draw(generator, "normal", (mean, std / math.sqrt(2.0) if dtype in _PARTS else std), n, dtype)


def log_normal(generator: Any, n: int, dtype: np.dtype, mean: float = 1.0, std: float = 2.0) -> Draw:
    """n samples whose logarithms have a normal distribution."""
    if not std > 0.0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    return _draw(generator, "log_normal", (mean, std), n, dtype)


def exponential(generator: Any, n: int, dtype: np.dtype, rate: float = 1.0) -> Draw:
    """n samples of the exponential distribution of a rate."""
    if not rate > 0.0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")
    if dtype.kind != "f" and dtype not in NARROW:
        raise RuntimeError("Exponential distribution is a continuous probability distribution. dtype must be "
                           f"a floating point but you specified {dtypes.of(dtype).scalar_name}")
    kind: Any = np.float64 if dtype == _F64 else np.float32
    return _draw(generator, "exponential", (float(kind(-1.0) / kind(rate)),), n, dtype)


def cauchy(generator: Any, n: int, dtype: np.dtype, median: float = 0.0, sigma: float = 1.0) -> Draw:
    """n samples of a Cauchy distribution."""
    if not sigma > 0.0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    if dtype.kind != "f" and dtype not in NARROW:
        raise RuntimeError("Cauchy distribution is a continuous probability distribution. dtype must be a "
                           f"floating point but you specified {dtypes.of(dtype).scalar_name}")
    return _draw(generator, "cauchy", (median, sigma), n, dtype)


def geometric(generator: Any, n: int, p: float, dtype: np.dtype) -> Draw:
    """n samples of a geometric distribution."""
    if not 0.0 < p < 1.0:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    return _draw(generator, "geometric", (math.log1p(-p) if dtype == _F64 else p,), n, dtype)


def bernoulli(generator: Any, n: int, p: float, dtype: np.dtype) -> Draw:
    """n samples, 1 with probability p."""
    if not 0.0 <= p <= 1.0:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    return _draw(generator, "bernoulli", (p,), n, dtype)


def random(generator: Any, n: int, dtype: np.dtype, low: int | None = None, high: int | None = None) -> Draw:
    """n integers over [low, high), or over all that a dtype represents where both are None."""
    from ...kernels.random.integers import integer_bounds

    if low is None and high is None:
        return _draw(generator, "any_integers", (), n, dtype)
    first, count = integer_bounds(dtype, low, high)
    name = "integers" if count >= 1 << 28 else "few_integers"
    return _draw(generator, name, (count % 2**64, first % 2**64), n, dtype)


def randint(generator: Any, n: int, low: int, high: int, dtype: np.dtype) -> Draw:
    """n integers of the uniform distribution over [low, high)."""
    return random(generator, n, dtype, low, high)


def _draw(generator: Any, distribution: str, parameters: Sequence[Any], n: int, dtype: np.dtype) -> Draw:
    return Draw(generator.device.index, generator.engine, distribution, parameters, n, dtype)


DISTRIBUTIONS: dict[str, Callable[..., Any]] = {each.__name__: each for each in (
    uniform, normal, log_normal, exponential, cauchy, geometric, bernoulli, random, randint)}


__all__ = ["DISTRIBUTIONS", "THREADS", "Draw", "Part", "start", "taken"]
