"""The memory planner: live buffers do not overlap, and the arena is near the peak of live bytes."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from flambeau import codegen
from flambeau.ir.graph.target import Target
from flambeau.ir.graph.value import Graph
from flambeau.ir.schedule.memory_planner import LiveRange, assign_offsets
from flambeau.ir.schedule.scheduler import Schedule
from flambeau.runtime.launch import ALIGNMENT
from tests.ir.legality import check

BLOCK = ALIGNMENT


def most_at_once(live_ranges):
    steps = range(max(each.last for each in live_ranges) + 1)
    return max(sum(-(-each.size // BLOCK) * BLOCK for each in live_ranges if each.first <= step <= each.last)
               for step in steps)


@pytest.mark.parametrize("seed", range(20))
def test_live_buffers_do_not_overlap(seed):
    chance = random.Random(seed)
    live_ranges = []
    for _ in range(chance.randrange(1, 60)):
        first = chance.randrange(40)
        live_ranges.append(LiveRange(first, first + int(chance.expovariate(0.2)), chance.randrange(0, 40 * BLOCK)))
    starts, top = assign_offsets(live_ranges)
    assert all(start % BLOCK == 0 for start in starts)
    assert top == max(start + -(-max(1, stay.size) // BLOCK) * BLOCK
                      for start, stay in zip(starts, live_ranges, strict=True))
    for (a, x), (b, y) in combinations(zip(starts, live_ranges, strict=True), 2):
        if x.first <= y.last and y.first <= x.last:
            assert a + x.size <= b or b + y.size <= a
    assert most_at_once(live_ranges) <= top <= 1.3 * most_at_once(live_ranges) + BLOCK


def test_small_buffers_do_not_fragment_memory():
    """Forward, small and large in turns; backward, what is large needs as much room as before again."""
    live_ranges = []
    for layer in range(8):
        live_ranges.append(LiveRange(2 * layer, 2 * layer + 1, 100 * BLOCK))  # is read by the next kernel alone
        live_ranges.append(LiveRange(2 * layer + 1, 40 - layer, 3 * BLOCK))
        live_ranges.append(LiveRange(40 - layer, 41 - layer, 101 * BLOCK))
    assert assign_offsets(live_ranges)[1] == most_at_once(live_ranges)


def test_no_buffers_need_no_memory():
    assert assign_offsets([]) == ([], 0)


@pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")
def test_scratch_memory_reuses_buffers():
    import numpy as np

    graph = Graph()
    x = graph.input(0, (300, 300), np.dtype(np.float32))
    y = graph.apply("exp", graph.matmul(x, graph.permute(x, (1, 0))))
    z = graph.matmul(graph.copy(graph.permute(y, (1, 0))), graph.matmul(y, x))
    plan = Schedule(graph, [Target(graph.reduce("sum", graph.matmul(z, z), (0, 1)))])
    check(plan)
    scratch = [max(each.scratch for each in kernel.launches) for kernel in plan.kernels]
    assert sorted(plan.scratch) == [step for step, size in enumerate(scratch) if size]
    assert plan.arena < sum(v.size * 4 for kernel in plan.kernels for v in kernel.outputs)
