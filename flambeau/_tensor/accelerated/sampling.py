"""Random numbers on a device that depend on tensors, each function with the name and arguments of `kernels.random`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.cuda_devices import current_runtime
from ...backends.cuda_devices.array import DeviceArray
from ...codegen.gpu.draws import choices, dropout, samplers
from ...engine.grad_mode import no_grad
from ...shapes import broadcast_shapes
from ..tensor import Tensor, wrap
from . import drawing
from .drawing import start, taken

_F32, _F64, _I32, _I64 = (np.dtype(each) for each in ("f4", "f8", "i4", "i8"))
#: words by which the offset grows, as in ATen
_BERNOULLI, _POISSON, _GAMMA, _BINOMIAL = 12, 20, 12, 44


def _empty(like: DeviceArray, shape: Sequence[int], dtype: np.dtype) -> DeviceArray:
    made: DeviceArray = current_runtime().empty(like.torch_device.index, shape, dtype)
    return made


def _dense(x: Any, shape: Sequence[int] | None = None, dtype: np.dtype | None = None) -> DeviceArray:
    """A row-major array, of a dtype, that has an array's elements, broadcast to a shape."""
    with no_grad():
        tensor = x if isinstance(x, Tensor) else wrap(x)
        if dtype is not None and tensor._array.dtype != dtype:
            tensor = tensor.to(dtypes.of(dtype))
        if shape is not None and tensor._array.shape != tuple(shape):
            tensor = tensor.expand(*shape)
        found: DeviceArray = tensor.contiguous()._array
    return found


def bernoulli_each(generator: Any, p: DeviceArray, dtype: np.dtype) -> DeviceArray:
    """A sample for each probability: 1 if a uniform over (0, 1] is not above it."""
    made = _empty(p, p.shape, dtype)
    if made.size:
        chance = _F64 if dtype == _F64 else _F32
        part = taken(generator.engine, _BERNOULLI)
        kernel = samplers.bernoulli(dtype, chance, part.captured)
        start("bernoulli", kernel, -(-made.size // (4 * kernel.threads)), [made], [_dense(p, None, chance)], part,
              (made.size,))
    return made


def _sampled(name: str, generator: Any, words: int, parameters: Sequence[DeviceArray], elements: int = 1
             ) -> DeviceArray:
    first = parameters[0]
    made = _empty(first, first.shape, first.dtype)
    if made.size:
        part = taken(generator.engine, words)
        kernel = samplers.sampler(name, first.dtype, part.captured)
        start(name, kernel, -(-made.size // (elements * kernel.threads)), [made], parameters, part, (made.size,))
    return made


def poisson(generator: Any, rate: DeviceArray) -> DeviceArray:
    """Samples of Poisson distributions."""
    return _sampled("poisson", generator, _POISSON, [_dense(rate)])


def standard_gamma(generator: Any, alpha: DeviceArray) -> DeviceArray:
    """Samples of gamma distributions of rate 1."""
    return _sampled("standard_gamma", generator, _GAMMA, [_dense(alpha)])


def binomial(generator: Any, count: DeviceArray, prob: DeviceArray) -> DeviceArray:
    """The successes among trials."""
    from ...kernels.random.counts import check_binomial

    check_binomial(count, prob)
    shape = broadcast_shapes(count.shape, prob.shape)
    return _sampled("binomial", generator, _BINOMIAL, [_dense(count, shape), _dense(prob, shape)],
                    samplers.BINOMIAL_ELEMENTS)


def dirichlet(generator: Any, alpha: DeviceArray) -> DeviceArray:
    """Gamma samples along the last axis, divided by their sum."""
    drawn: Any = wrap(standard_gamma(generator, alpha))
    limits = dtypes.finfo(drawn.dtype)
    with no_grad():
        shares = (drawn / drawn.sum(-1, keepdim=True)).clamp(limits.tiny, 1 - limits.eps)
    found: DeviceArray = shares._array
    return found


def normal_around(generator: Any, mean: Any, std: Any) -> DeviceArray:
    """Normal numbers, each with its own mean and standard deviation."""
    centre, spread = (wrap(x) if isinstance(x, np.ndarray) else x for x in (mean, std))
    dtype = (mean if isinstance(mean, np.ndarray) else std).dtype
    shapes = [x.shape for x in (mean, std) if isinstance(x, np.ndarray)]
    shape = broadcast_shapes(shapes[0], shapes[-1])
    if isinstance(spread, Tensor):
        if spread.dtype.is_complex:
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if spread.numel() and not bool((spread.min() >= 0).item()):
            raise RuntimeError("normal expects all elements of std >= 0.0")
    each = 1.0 if isinstance(spread, Tensor) else float(spread)
    with no_grad():
        drawn: Any = wrap(drawing.normal(generator, math.prod(shape), dtype, 0.0, each).reshape(tuple(shape)))
        if isinstance(spread, Tensor):
            drawn.mul_(spread)
        drawn.add_(centre)
    found: DeviceArray = drawn._array
    return found


def multinomial(generator: Any, weights: DeviceArray, n: int, replacement: bool = False) -> DeviceArray:
    """Indices drawn with the weights of rows, (k) or (m, k)."""
    from ...kernels.random.discrete import check_multinomial

    check_multinomial(weights, n, replacement)
    if not weights.size:
        return _empty(weights, (*weights.shape[:-1], n), _I64)
    given: Any = wrap(weights)
    with no_grad():
        if not replacement or n == 1:
            waits: Any = wrap(drawing.exponential(generator, weights.size, weights.dtype).placed(_layout(weights)))
            speeds = given / waits
            chosen = speeds.argmax(-1, keepdim=True) if n == 1 else speeds.topk(n)[1]
            found: DeviceArray = chosen.contiguous()._array
            return found
        rows = given.reshape(-1, weights.shape[-1])
        shares = rows / rows.sum(-1, keepdim=True)
        cumulative = shares.cumsum(-1)
    count, categories = rows.shape
    across, down = -(-n // choices.THREADS), min(count, 65535)
    rounds = -(-count // down)
    made = _empty(weights, (*weights.shape[:-1], n), _I64)
    part = taken(generator.engine, 4 * rounds)
    start("multinomial", choices.choose(weights.dtype, part.captured), (across, down, 1), [made],
          [_dense(cumulative), _dense(shares)], part, (count, n, categories, across, down, rounds))
    return made


def _layout(a: DeviceArray) -> np.ndarray:
    """An array of the host that has an array's shape and, if it is dense, its strides."""
    from ...kernels.memory_format import empty_in_layout

    like: np.ndarray = empty_in_layout(a.view(np.ndarray), a.dtype)
    return like


def randperm(generator: Any, n: int, dtype: np.dtype) -> DeviceArray:
    """The integers from 0 to n - 1 in random order: sorted by random keys; those of equal keys are shuffled."""
    from ...kernels.random.permutation import check_dtype

    check_dtype(n, dtype)
    runtime, device = current_runtime(), generator.device.index
    if not n:
        empty: DeviceArray = runtime.empty(device, (0,), dtype)
        return empty
    bits = min(64, math.ceil(math.log2(n - (6.0 * n * n + 1) / (math.log(0.9) * 12))))
    kind = _I32 if bits <= 32 else _I64
    lowest, highest = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    with no_grad():
        drawn: Any = wrap(drawing.random(generator, n, kind, lowest, highest).reshape((n,)))
        keys = drawn.long() if bits == 64 else (drawn.long() - (lowest if bits <= 32 else 0)) & (2**bits - 1)
        ordered, order = keys.sort(stable=True)
    part = taken(generator.engine, n)
    start("randperm", choices.shuffle_equal(part.captured), -(-n // choices.SHUFFLE_THREADS), [order._array],
          [ordered._array], part, (n,))
    found: DeviceArray = order.to(dtypes.of(dtype))._array
    return found


# ----- dropout and rrelu -----

def _rounds(engine: Any, count: int, per_round: int) -> tuple[int, int]:
    """(threads, rounds of each) of a launch whose threads draw `per_round` numbers in a round."""
    threads = drawing.THREADS * min(-(-count // drawing.THREADS), engine.blocks)
    return threads, (count - 1) // (threads * per_round) + 1


def dropped(generator: Any, x: DeviceArray, keep: float, vector: int) -> tuple[DeviceArray, DeviceArray]:
    """(x scaled where it is kept, else 0; which elements are kept), in x's layout.

    Args:
        x: dense.
        keep: the probability to keep an element.
        vector: the neighbouring elements of a thread's round: 8, 4, 2 or 1.
    """
    runtime, engine, count = current_runtime(), generator.engine, x.size
    strides = None if x.flags.c_contiguous else x.strides
    made = runtime.empty(x.torch_device.index, x.shape, x.dtype, strides)
    kept = runtime.empty(x.torch_device.index, x.shape, np.dtype(np.bool_), None if strides is None else [
        s // x.itemsize for s in strides])
    threads, rounds = _rounds(engine, count, dropout.PER_BLOCK)
    part = taken(engine, dropout.PER_BLOCK * rounds)
    if vector > 1:
        threads = drawing.THREADS * min(-(-count // (drawing.THREADS * vector)), engine.blocks)
        rounds = -(-count // (threads * vector))
    kind: Any = np.float64 if x.dtype == _F64 else np.float32
    probability = float(kind(keep))
    start("native_dropout", dropout.dropout(x.dtype, vector, part.captured), threads // drawing.THREADS, [made, kept],
          [x], part, (count, threads, rounds, probability, float(kind(1.0 / probability))))
    return made, kept


def attention_weights_dropped(generator: Any, x: DeviceArray, p: float) -> tuple[DeviceArray, DeviceArray]:
    """What `dropped` returns of row-major attention weights of float32, with the numbers of the fused kernel."""
    made, kept = _empty(x, x.shape, x.dtype), _empty(x, x.shape, np.dtype(np.bool_))
    part = taken(generator.engine, x.size)
    kernel = dropout.dropout_in_sequence(part.captured)
    start("attention_dropout", kernel, -(-x.size // (dropout.PER_BLOCK * kernel.threads)), [made, kept], [_dense(x)],
          part, (x.size, p, float(np.float32(1.0 / (1.0 - p)))))
    return made, kept


def rrelu_slopes(generator: Any, x: DeviceArray, low: float, high: float) -> DeviceArray:
    """The slopes of `rrelu` in training, row-major: 1 for positive elements."""
    made = _empty(x, x.shape, x.dtype)
    if made.size:
        engine = generator.engine
        threads, blocks = _rounds(engine, made.size, 2 if x.dtype == _F64 else 4)
        part = taken(engine, 4 * _rounds(engine, made.size, 4)[1])
        start("rrelu", dropout.slopes(x.dtype, part.captured), threads // drawing.THREADS, [made], [_dense(x)], part,
              (made.size, threads, blocks, low, high - low))
    return made


SAMPLES: dict[str, Callable[..., Any]] = {
    **drawing.DISTRIBUTIONS,
    **{each.__name__: each for each in (bernoulli_each, poisson, standard_gamma, binomial, dirichlet, normal_around,
                                        multinomial, randperm)}}

__all__ = ["SAMPLES", "attention_weights_dropped", "dropped", "rrelu_slopes"]
