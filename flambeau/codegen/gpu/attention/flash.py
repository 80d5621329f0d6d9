"""Flash attention: softmax(scale · Q Kᵀ) V, and its gradient, without the matrix of scores in memory.

A block has 64 queries of one head, and goes through the keys 64 at a time: scores by the tensor cores, their running
maximum and sum, and the sum of values so far, which a new maximum rescales. The backward pass computes the scores
again: one kernel per query for dQ, one per key for dK and dV, so that no two blocks add to one element and the results
are the same in each run. Sums are float32. Reference: Dao, "FlashAttention-2: Faster attention with better parallelism
and work partitioning", 2023.

>>> import numpy as np
>>> from flambeau.runtime.launch import Spec
>>> q = Spec.dense((2, 8, 128, 64), np.dtype(np.float16))
>>> [one] = forward(q, Spec.dense((2, 8, 128), np.dtype(np.float32)), q, q, q, scale=0.125)
>>> one.grid
(32, 1, 1)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from ....runtime.launch import Spec
from ...scalar.scalar_ir import Node, constant, exp2, log2, maximum, select
from ..kernel_ir import Kernel, KernelBuilder
from ..launches import Argument, DeviceLaunch, launch
from ..statements import Buffer, Local
from .warp_tiles import F32, ROWS, Array, Heads, Sums, as_left, check, vector_width

#: keys of a step in the forward pass, and rows of a step in the backward pass, which has more sums in registers
KEYS, STEP = 64, 32
LOG2_E = math.log2(math.e)


def forward(out: Spec, lse: Spec, query: Spec, key: Spec, value: Spec, scale: float, causal: bool = False
            ) -> list[DeviceLaunch]:
    """The launch of attention.

    Args:
        out: (batch, heads, L, width), the result.
        lse: (batch, heads, L), float32: the logarithm of the sum of the exponentials, for the backward pass.
        query: (batch, heads, L, width), float16 or bfloat16.
        key, value: (batch, heads, S, width).
        scale: of the scores.
        causal: whether query i sees keys up to i only.

    Raises:
        TypeError: other dtypes.
        NotImplementedError: heads wider than 128.
    """
    return list(_launches(out, lse, query, key, value, scale, causal))


@lru_cache(256)
def _launches(out: Spec, lse: Spec, query: Spec, key: Spec, value: Spec, scale: float, causal: bool
              ) -> tuple[DeviceLaunch, ...]:
    check(query, [key, value])
    if not out.size:
        return ()
    tiles = -(-query.shape[2] // ROWS)
    blocks = query.shape[0] * query.shape[1] * tiles
    width = vector_width([key, value])
    specs = [out, lse], [query, key, value]
    made = launch(_forward(*specs, tiles, scale, causal, width), blocks)
    if width > 1:
        made = made._replace(unaligned=launch(_forward(*specs, tiles, scale, causal, 1), blocks))
    return (made,)


def backward(grads: Sequence[Spec], grad: Spec, query: Spec, key: Spec, value: Spec, lse: Spec, delta: Spec,
             scale: float, causal: bool = False) -> list[DeviceLaunch]:
    """The launches of attention's gradient: over the pointers of dQ, dK, dV and the arguments from `grad` on.

    Args:
        grads: of query, key and value.
        grad: of the result.
        query, key, value, lse: of the forward pass.
        delta: (batch, heads, L), float32: the sum of grad · out over the width.
        scale, causal: of the forward pass.
    """
    return list(_gradient_launches(tuple(grads), grad, query, key, value, lse, delta, scale, causal))


@lru_cache(256)
def _gradient_launches(grads: tuple[Spec, ...], grad: Spec, query: Spec, key: Spec, value: Spec, lse: Spec,
                       delta: Spec, scale: float, causal: bool) -> tuple[DeviceLaunch, ...]:
    check(query, [key, value, grad])
    inputs = [grad, query, key, value, lse, delta]
    work = []
    for kernel_of, rows, first, outs in ((_query_gradient, query, 0, 1), (_key_gradient, key, 1, 2)):
        tiles = -(-rows.shape[2] // ROWS)
        blocks = query.shape[0] * query.shape[1] * tiles
        if not blocks:
            continue
        width = vector_width([grad, query, key, value])
        outputs = list(grads[first:first + outs])
        one = launch(kernel_of(outputs, inputs, tiles, scale, causal, width), blocks)
        operands = [*range(first, first + outs), *range(3, 9)]
        one = one._replace(arguments=tuple(map(Argument, operands)))
        if width > 1:
            one = one._replace(unaligned=one._replace(kernel=kernel_of(outputs, inputs, tiles, scale, causal, 1)))
        work.append(one)
    return tuple(work)


def _shared(b: KernelBuilder, dtype: np.dtype, rows: int, padded: int) -> tuple[Buffer, Buffer]:
    """A tile of rows, and its transpose."""
    return b.shared(dtype, rows * (padded + 8)), b.shared(dtype, padded * (rows + 8))


def _locals(b: KernelBuilder, count: int, value: float) -> list[Local]:
    return [b.local(constant(value, F32)) for _ in range(count)]


def _across(b: KernelBuilder, merge: Callable[[Node, Node], Node], value: Node) -> Node:
    """Merge over the four threads that have a row."""
    for lanes in (1, 2):
        value = merge(value, b.shuffle_xor(value, lanes))
    return value


class _Mask:
    """Which scores count: those of keys that exist and, with `causal`, that a query may see."""

    def __init__(self, keys: int, step: int, causal: bool) -> None:
        self.ragged, self.keys, self.causal = keys % step != 0, keys, causal

    def __call__(self, query: Node, key: Node) -> Node | None:
        found: Node | None = key < self.keys if self.ragged else None
        if self.causal:
            seen = key <= query
            found = seen if found is None else found & seen
        return found


def _forward(outputs: Sequence[Spec], inputs: Sequence[Spec], tiles: int, scale: float, causal: bool, vector: int
             ) -> Kernel:
    heads = Heads("attention", outputs, inputs, tiles, inputs[0].shape[3])
    b, dtype, padded = heads.b, inputs[0].dtype, heads.padded
    out, lse, query, key, value = heads.arrays
    keys_tile = b.shared(dtype, KEYS * (padded + 8))
    values_tile = b.shared(dtype, padded * (KEYS + 8))
    first = heads.tile * ROWS
    left = heads.left_from_memory(query, first)
    top, total = _locals(b, 2, -math.inf), _locals(b, 2, 0.0)
    sums = [_locals(b, 4, 0.0) for _ in range(padded // 8)]
    masked = _Mask(key.length, KEYS, causal)
    places = [(first + row, column) for row, column in heads.places()]
    with b.loop(heads.zero, _last_key(heads, first, key, causal), heads.number(KEYS)) as start:
        b.barrier()
        heads.stage(key, start, KEYS, keys_tile, None, vector)
        heads.stage(value, start, KEYS, None, values_tile, vector)
        b.barrier()
        scores = heads.product(left, keys_tile, padded + 8, KEYS)
        scaled: Sums = []
        for j, each in enumerate(scores):
            row = []
            for x, (i, k) in zip(each, places, strict=True):
                counts = masked(i, start + (k + 8 * j))
                logarithm = x * (scale * LOG2_E)
                row.append(logarithm if counts is None else select(counts, logarithm, -math.inf))
            scaled.append(row)
        weights = [list(each) for each in scaled]
        factors = []
        for low in (0, 1):
            old = b.get(top[low])
            most = old
            for each in scaled:
                most = maximum(most, maximum(each[2 * low], each[2 * low + 1]))
            most = _across(b, maximum, most)
            factor = exp2(old - most)
            part = constant(0.0, F32)
            for each in weights:
                for n in (2 * low, 2 * low + 1):
                    each[n] = exp2(each[n] - most)
                    part = part + each[n]
            b.set(total[low], b.get(total[low]) * factor + _across(b, lambda x, y: x + y, part))
            b.set(top[low], most)
            factors.append(factor)
        before = [[b.get(x) * factors[n // 2] for n, x in enumerate(each)] for each in sums]
        after = heads.product(as_left(weights, dtype), values_tile, KEYS + 8, padded, before)
        _set(b, sums, after)
    inverse = [1.0 / b.get(each) for each in total]
    for j, kept in enumerate(sums):
        for n, (local, (i, k)) in enumerate(zip(kept, places, strict=True)):
            _store(heads, out, i, k + 8 * j, b.get(local) * inverse[n // 2])
    for low in (0, 1):
        i = places[2 * low][0]
        result = (b.get(top[low]) + log2(b.get(total[low]))) * (1 / LOG2_E)
        b.store(lse.buffer, lse.base + i * lse.row, result, (heads.place < 1) & (i < lse.length))
    return b.kernel()


def _last_key(heads: Heads, first: Node, key: Array, causal: bool) -> Node:
    """The end of the keys that a block of queries sees."""
    end = heads.number(key.length)
    if not causal:
        return end
    seen = first + ROWS
    return select(seen < key.length, seen, end)


def _set(b: KernelBuilder, sums: Sequence[Sequence[Local]], values: Sums) -> None:
    for local_row, row in zip(sums, values, strict=True):
        for local, value in zip(local_row, row, strict=True):
            b.set(local, value)


def _store(heads: Heads, to: Array, row: Node, column: Node, value: Node) -> None:
    inside = row < to.length
    if heads.padded != heads.width:
        inside = inside & (column < heads.width)
    heads.b.store(to.buffer, to.base + row * to.row + column * to.column, value, inside)


def _query_gradient(outputs: Sequence[Spec], inputs: Sequence[Spec], tiles: int, scale: float, causal: bool,
                    vector: int) -> Kernel:
    """dQ = scale · dS K, with dS = P · (dO Vᵀ - delta): a block for 64 queries."""
    heads = Heads("attention_dq", outputs, inputs, tiles, inputs[1].shape[3])
    b, dtype, padded = heads.b, inputs[1].dtype, heads.padded
    dq, grad, query, key, value, lse, delta = heads.arrays
    keys_tile, keys_across = _shared(b, dtype, STEP, padded)
    values_tile = b.shared(dtype, STEP * (padded + 8))
    first = heads.tile * ROWS
    left, left_grad = heads.left_from_memory(query, first), heads.left_from_memory(grad, first)
    places = [(first + row, column) for row, column in heads.places()]
    statistics = [[b.load(x.buffer, x.base + places[2 * low][0] * x.row, places[2 * low][0] < x.length)
                   for low in (0, 1)] for x in (lse, delta)]
    sums = [_locals(b, 4, 0.0) for _ in range(padded // 8)]
    masked = _Mask(key.length, STEP, causal)
    with b.loop(heads.zero, _last_key(heads, first, key, causal), heads.number(STEP)) as start:
        b.barrier()
        heads.stage(key, start, STEP, keys_tile, keys_across, vector)
        heads.stage(value, start, STEP, values_tile, None, vector)
        b.barrier()
        scores = heads.product(left, keys_tile, padded + 8, STEP)
        slopes = heads.product(left_grad, values_tile, padded + 8, STEP)
        made: Sums = []
        for j, (each, slope) in enumerate(zip(scores, slopes, strict=True)):
            row = []
            for n, (x, y, (i, k)) in enumerate(zip(each, slope, places, strict=True)):
                weight = exp2(x * (scale * LOG2_E) - statistics[0][n // 2] * LOG2_E)
                counts = masked(i, start + (k + 8 * j))
                ds = weight * (y - statistics[1][n // 2])
                row.append(ds if counts is None else select(counts, ds, 0.0))
            made.append(row)
        after = heads.product(as_left(made, dtype), keys_across, STEP + 8, padded,
                              [[b.get(x) for x in each] for each in sums])
        _set(b, sums, after)
    for j, kept in enumerate(sums):
        for local, (i, k) in zip(kept, places, strict=True):
            _store(heads, dq, i, k + 8 * j, b.get(local) * scale)
    return b.kernel()


def _key_gradient(outputs: Sequence[Spec], inputs: Sequence[Spec], tiles: int, scale: float, causal: bool,
                  vector: int) -> Kernel:
    """dV = Pᵀ dO and dK = scale · dSᵀ Q: a block for 64 keys, which goes through the queries."""
    heads = Heads("attention_dkv", outputs, inputs, tiles, inputs[1].shape[3])
    b, dtype, padded = heads.b, inputs[1].dtype, heads.padded
    dk, dv, grad, query, key, value, lse, delta = heads.arrays
    (query_tile, query_across), (grad_tile, grad_across) = (_shared(b, dtype, STEP, padded) for _ in range(2))
    first = heads.tile * ROWS
    left, left_value = heads.left_from_memory(key, first), heads.left_from_memory(value, first)
    places = [(first + row, column) for row, column in heads.places()]  # of keys and queries
    by_key, by_value = ([_locals(b, 4, 0.0) for _ in range(padded // 8)] for _ in range(2))
    masked = _Mask(query.length, STEP, False)
    begin = first / STEP * STEP if causal else heads.zero
    with b.loop(begin, heads.number(query.length), heads.number(STEP)) as start:
        b.barrier()
        heads.stage(query, start, STEP, query_tile, query_across, vector)
        heads.stage(grad, start, STEP, grad_tile, grad_across, vector)
        b.barrier()
        scores = heads.product(left, query_tile, padded + 8, STEP)
        slopes = heads.product(left_value, grad_tile, padded + 8, STEP)
        weights: Sums = []
        made: Sums = []
        for j, (each, slope) in enumerate(zip(scores, slopes, strict=True)):
            statistics = []
            for number in (0, 1):
                i = start + (places[number][1] + 8 * j)
                statistics.append([b.load(x.buffer, x.base + i * x.row, i < x.length) for x in (lse, delta)])
            row, ds_row = [], []
            for n, (x, y, (k, column)) in enumerate(zip(each, slope, places, strict=True)):
                i = start + (column + 8 * j)
                weight = exp2(x * (scale * LOG2_E) - statistics[n % 2][0] * LOG2_E)
                counts = masked(i, i)
                if causal:
                    counts = k <= i if counts is None else counts & (k <= i)
                weight = weight if counts is None else select(counts, weight, 0.0)
                row.append(weight)
                ds_row.append(weight * (y - statistics[n % 2][1]))
            weights.append(row)
            made.append(ds_row)
        for sums, rows, tile in ((by_value, weights, grad_across), (by_key, made, query_across)):
            before = [[b.get(x) for x in each] for each in sums]
            _set(b, sums, heads.product(as_left(rows, dtype), tile, STEP + 8, padded, before))
    for sums, to, factor in ((by_key, dk, scale), (by_value, dv, 1.0)):
        for j, kept in enumerate(sums):
            for local, (k, column) in zip(kept, places, strict=True):
                _store(heads, to, k, column + 8 * j, b.get(local) * factor)
    return b.kernel()


__all__ = ["backward", "forward"]
