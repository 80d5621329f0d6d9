"""`torch.utils.benchmark`: timers, measurements and tables."""

from __future__ import annotations

import re

import numpy as np
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


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:Sparse invariant")
@pytest.mark.parametrize("seed", range(3))
def test_drawn_arguments_are_those_of_pytorch(seed):
    theirs = pytest.importorskip("torch.utils.benchmark")
    drawn = []
    for module in (benchmark, theirs):
        parameters = [module.FuzzedParameter("k", 2, 9, "uniform"), [module.FuzzedParameter("n", 1, 30, "loguniform")],
                      module.FuzzedParameter("f", 0.0, 1.0, "uniform", strict=True),
                      module.FuzzedParameter("dim", 1, 3, "uniform"),
                      module.FuzzedParameter("sparse_dim", 1, 2, "uniform"),
                      module.FuzzedParameter("density", 0.1, 0.9, "uniform"),
                      module.FuzzedParameter("coalesced", 0, 1, "uniform")]
        tensors = [module.FuzzedTensor("x", ("k", "n", 3), ("n", 1), 0.3, 4, 200, dim_parameter="dim"),
                   [module.FuzzedSparseTensor("s", ("k", "n"), sparse_dim="sparse_dim")]]
        fuzzer = module.Fuzzer(parameters, tensors, [lambda p: p["k"] != p["n"]], seed)
        rows, values = [], []
        for made, properties, params in fuzzer.take(4):
            values += [(each.to_dense() if each.is_sparse else each).numpy() for each in made.values()]
            rows.append((made["x"].stride(), {name: {key: str(value).replace("flambeau", "torch") for key, value in
                                                     each.items()} for name, each in properties.items()}, params))
        drawn.append((rows, fuzzer.rejection_rate, values))
    assert drawn[0][:2] == drawn[1][:2]
    for mine, other in zip(drawn[0][2], drawn[1][2], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5)


def test_aliases_and_choices_of_arguments():
    choice = benchmark.FuzzedParameter("b", distribution={1: 0.5, benchmark.ParameterAlias("a"): 0.5})
    fuzzer = benchmark.Fuzzer([benchmark.FuzzedParameter("a", 3, 3, "uniform"), choice], [], seed=1)
    assert {params["b"] for _, _, params in fuzzer.take(20)} == {1, 3}
    cycle = benchmark.FuzzedParameter("c", distribution={benchmark.ParameterAlias("c"): 1.0})
    with pytest.raises(ValueError, match="ParameterAlias cycle detected"):
        next(benchmark.Fuzzer([cycle], [], seed=1).take(1))
    with pytest.raises(ValueError, match="Failed to generate"):
        next(benchmark.Fuzzer([benchmark.FuzzedParameter("a", 3, 3, "uniform")], [], [lambda p: False], 1).take(1))
    with pytest.raises(ValueError, match="Duplicate names"):
        benchmark.Fuzzer([choice], [benchmark.FuzzedTensor("b", (1,))])
    for arguments in (("x", 1, 2, "normal"), ("x", None, None, {1: -1.0}), ("x", None, None, {1: 0.5}),
                      ("x", 1, None, {1: 1.0})):
        with pytest.raises(AssertionError):
            benchmark.FuzzedParameter(*arguments)
    with pytest.raises(NotImplementedError, match="counts no instructions"):
        benchmark.CallgrindStats()
