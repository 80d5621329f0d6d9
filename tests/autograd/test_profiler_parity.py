"""Profiler tables and sums compared with PyTorch's, for the same events."""

from __future__ import annotations

import pytest

from flambeau.autograd import profiler_util as ours

pytest.importorskip("torch")
theirs = pytest.importorskip("torch.autograd.profiler_util")

pytestmark = pytest.mark.parity

EVENTS = [
    {"id": 1, "name": "aten::mul", "thread": 1, "start_us": 0, "end_us": 100, "input_shapes": [[2, 3], []],
     "cpu_memory_usage": 100, "sequence_nr": 3},
    {"id": 2, "name": "aten::to", "thread": 1, "start_us": 10, "end_us": 30, "cpu_memory_usage": 40},
    {"id": 3, "name": "a_long_name_" * 7, "thread": 1, "start_us": 200, "end_us": 2000200, "input_shapes": [[2] * 40]},
    {"id": 4, "name": "n" * 53, "thread": 1, "start_us": 2000300, "end_us": 2001300.5},
    {"id": 5, "name": "aten::mul", "thread": 2, "start_us": 50, "end_us": 60, "input_shapes": [[2, 3], []],
     "cpu_memory_usage": 5 * 2**20},
    {"id": 6, "name": "later", "thread": 1, "start_us": 3000200, "end_us": 3000300, "is_async": True},
]
TABLES = [{}, {"sort_by": "count"}, {"sort_by": "self_cpu_time_total", "row_limit": 2}, {"header": "A profile"},
          {"sort_by": "cpu_time", "row_limit": -1}, {"top_level_events_only": True}, {"max_name_column_width": 10},
          {"max_name_column_width": None, "max_shapes_column_width": None}, {"max_shapes_column_width": 20},
          {"time_unit": "ms"}, {"sort_by": "cuda_time_total"}]


def built(util, memory, stacks=False):
    events = util.EventList([util.FunctionEvent(stack=["/a/file.py(3): f", "/another/file.py(10): g"] if stacks else [],
                                                **event) for event in EVENTS],
                            use_device=None, profile_memory=memory, with_flops=False)
    events._build_tree()
    return events


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("options", TABLES, ids=str)
def test_the_same_table(options, memory):
    mine, other = built(ours, memory), built(theirs, memory)
    assert mine.table(**options) == other.table(**options)
    if "top_level_events_only" in options:
        return
    for group in ({}, {"group_by_input_shapes": True}):
        assert mine.key_averages(**group).table(**options) == other.key_averages(**group).table(**options)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_same_table_with_callers(n):
    mine, other = built(ours, False, stacks=True), built(theirs, False, stacks=True)
    assert mine.key_averages(group_by_stack_n=n).table() == other.key_averages(group_by_stack_n=n).table()
    assert mine.key_averages(group_by_stack_n=n).table(max_src_column_width=15) == (
        other.key_averages(group_by_stack_n=n).table(max_src_column_width=15))


def test_the_same_sums():
    mine, other = built(ours, True), built(theirs, True)
    assert repr(mine.total_average()) == repr(other.total_average())
    assert mine.self_cpu_time_total == other.self_cpu_time_total
    assert [repr(event) for event in mine] == [repr(event) for event in other]
    assert [repr(group) for group in mine.key_averages()] == [repr(group) for group in other.key_averages()]
