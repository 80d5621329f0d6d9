"""`torch.utils.benchmark`: timers, measurements and tables."""

from __future__ import annotations

import re

import pytest

import flambeau as torch
from flambeau.utils import benchmark


def test_a_timer_measures():
    timer = benchmark.Timer("x + y", setup="y = 2 * x", globals={"x": torch.ones(3)}, label="sum", sub_label="3")
    once = timer.timeit(20)
    assert once.number_per_run == 20
    assert len(once.times) == 1
    assert once.median == once.mean > 0
    blocks = timer.blocked_autorange(min_run_time=0.01)
    assert sum(blocks.raw_times) >= 0.01
    assert blocks.label == "sum"
    assert timer.adaptive_autorange(min_run_time=0.001, max_run_time=0.1).times
    assert re.match(r"<.*Measurement object at 0x[0-9a-f]+>\nsum: 3\nsetup: y = 2 \* x\n", repr(once))


def test_statistics():
    task = benchmark.TaskSpec("f(x)", "pass")
    measurement = benchmark.Measurement(2, [2.0, 4.0, 6.0, 8.0], task)
    assert measurement.times == [1.0, 2.0, 3.0, 4.0]
    assert (measurement.median, measurement.mean, measurement.iqr) == (2.5, 2.5, 1.5)
    assert measurement.has_warnings
    merged = benchmark.Measurement.merge([measurement, measurement])
    assert len(merged) == 1
    assert len(merged[0].times) == 8
    assert benchmark.select_unit(3e-5) == ("us", 1e-6)
    with pytest.raises(AttributeError):
        measurement.nothing


def test_a_table():
    def measured(size, name, time):
        return benchmark.Measurement(1, [time], benchmark.TaskSpec("f", "pass", label="f", sub_label=size,
                                                                   description=name))

    text = str(benchmark.Compare([measured("10", "old", 2e-6), measured("10", "new", 1e-6),
                                  measured("20", "old", 4e-6)]))
    assert text == """\
[---------- f -----------]
            |  old  |  new
1 thread: ----------------
      10    |  2.0  |  1.0
      20    |  4.0  |     

Times are in microseconds (us).
"""  # noqa: W291


def test_what_is_refused():
    with pytest.raises(NotImplementedError, match=r"Valgrind|instructions"):
        benchmark.Timer().collect_callgrind()
    with pytest.raises(NotImplementedError, match="C\\+\\+"):
        benchmark.Timer(language="c++")
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        benchmark.Compare([3])
