"""The plan cache: plans survive a round trip, and damaged entries are planned again."""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import flambeau
from flambeau import codegen
from flambeau.ir.graph.target import Target
from flambeau.ir.graph.value import FLOAT32, Graph
from flambeau.ir.schedule import plan_cache
from flambeau.ir.schedule.program import Program
from flambeau.ir.schedule.steps import Call
from flambeau.kernels import threads
from flambeau.runtime import cache_store, compilation
from tests.ir.random_graphs import Random

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache folder. Code that this process has loaded is not written again."""
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    return tmp_path / "plans"


def programs_of(seed):
    made = Random(seed)
    return made, Program(made.graph, made.targets, made.conditions)


def results(made, program):
    arrays = [np.ascontiguousarray(made.inputs[number]).copy() for number in program.inputs]
    return [*(program.run(arrays) or []), *arrays]


def plain(execution_plan):
    """A execution_plan without its libraries and functions, which are others in another process."""
    def step(each):
        if isinstance(each, Call):
            return repr(each.extern), each.inputs, each.outputs, each.kernel
        what = each.launch
        if not hasattr(what, "library"):
            return what, [*map(tuple, each.pointers)], each.kernel
        words = [w if isinstance(w, int) else (w.library.recipe, w.name) for w in (what.body, *what.words, what.then)]
        return what.library.recipe, words, what.chunks, what.scratch, [*map(tuple, each.pointers)], each.kernel

    return execution_plan._replace(constants=[(a.dtype, a.shape, a.tobytes()) for a in execution_plan.constants],
                                   output_specs=[*map(tuple, execution_plan.output_specs)],
                                   steps=[*map(step, execution_plan.steps)])


def test_plans_round_trip(folder):
    for seed in range(20):
        made, program = programs_of(seed)
        expected = results(made, program)
        again = Random(seed)
        found = plan_cache.read(plan_cache.cache_key(again.graph, again.targets, again.conditions), again.graph)
        assert plain(found) == plain(program.execution_plan), f"graph of seed {seed}"
        of_disk = Program(again.graph, again.targets, again.conditions)
        assert len(again.graph.values) == of_disk._captured, "a plan that is kept is not made again"
        for a, b in zip(results(again, of_disk), expected, strict=True):
            assert a.tobytes() == b.tobytes(), f"graph of seed {seed}"


def sum_of(function):
    """Of the function's values."""
    graph = Graph()
    x = graph.input(0, (40, 50), FLOAT32)
    return graph, [Target(graph.reduce("sum", graph.apply(function, x), (1,)))], []


def test_keys_depend_on_graph_threads_and_settings(monkeypatch):
    graph, targets, conditions = sum_of("exp")
    name = plan_cache.cache_key(graph, targets, conditions)
    assert plan_cache.cache_key(*sum_of("exp")) == name
    other = Graph()
    x = other.input(0, (40, 51), FLOAT32)
    assert plan_cache.cache_key(other, [Target(other.reduce("sum", other.apply("exp", x), (1,)))], []) != name
    assert plan_cache.cache_key(graph, [Target(graph.values[1])], conditions) != name
    monkeypatch.setenv("FLAMBEAU_DEBUG", "")
    assert plan_cache.cache_key(graph, targets, conditions) == name
    monkeypatch.setenv("FLAMBEAU_SOMETHING", "1")
    assert plan_cache.cache_key(graph, targets, conditions) != name
    monkeypatch.delenv("FLAMBEAU_SOMETHING")
    monkeypatch.setattr(threads, "_limit", threads.count() + 1)
    assert plan_cache.cache_key(graph, targets, conditions) != name


@pytest.mark.parametrize("harm", ["damaged", "gone"])
def test_truncated_or_damaged_plans_are_rebuilt(folder, harm):
    x = np.random.default_rng(0).standard_normal((40, 50)).astype(np.float32)
    [expected] = Program(*sum_of("sin")).run([x])
    again = sum_of("sin")
    name = plan_cache.cache_key(*again)
    content = bytearray((folder / name).read_bytes())
    if harm == "damaged":
        content[-3] ^= 1
        (folder / name).write_bytes(content)
    else:
        (folder / name).unlink()
    assert plan_cache.read(name, again[0]) is None
    assert Program(*again).run([x])[0].tobytes() == expected.tobytes()
    assert plan_cache.read(name, again[0]) is not None


def test_plans_without_cached_code_are_rebuilt(folder, monkeypatch):
    x = np.random.default_rng(0).standard_normal((40, 50)).astype(np.float32)
    [expected] = Program(*sum_of("cos")).run([x])
    monkeypatch.setattr(compilation, "load_cached", lambda recipe, names: None)
    again = sum_of("cos")
    assert plan_cache.read(plan_cache.cache_key(*again), again[0]) is None
    assert Program(*again).run([x])[0].tobytes() == expected.tobytes()


def test_valid_entries_that_are_not_plans_are_rebuilt(folder):
    asked = sum_of("sinh")
    name = plan_cache.cache_key(*asked)
    for payload in (b"this is no plan", marshal.dumps(None), marshal.dumps((1, 2)), marshal.dumps((1,) * 8)):
        cache_store.PLANS.write(name, payload)
        assert plan_cache.read(name, asked[0]) is None
        assert cache_store.PLANS.read(name) is None


PROGRAM = """
import flambeau as torch
from flambeau.ir.schedule import plan_cache as keeping
read = keeping.read
found = []
keeping.read = lambda *args: found.append(read(*args)) or found[-1]
torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Dropout(0.5),
                            torch.nn.Flatten(), torch.nn.Linear(36, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, y = torch.randn(8, 2, 8, 8), torch.randint(0, 5, (8,))

@torch.compile(fullgraph=True)
def step(x, y):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss

print(*[step(x, y).item() for _ in range(6)])
print("planned" if found[0] is None else "kept")
print("kernels" in str(torch.compile.explain(step)(x, y)))
"""


def test_a_second_process_loads_the_plan(tmp_path):
    def run():
        environment = {**os.environ, "FLAMBEAU_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True,
                              cwd=Path(flambeau.__file__).parent.parent, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    first, how, explained = run()
    assert (how, explained) == ("planned", "True")
    second, how, explained = run()
    assert (how, explained) == ("kept", "True")
    # the first process ran more steps eagerly, whose updates a processor without fused sums rounds otherwise
    assert list(map(float, second.split())) == pytest.approx(list(map(float, first.split())), rel=1e-5)
    assert any((tmp_path / "plans").iterdir())
