"""The trace cache: from the second process on, one trace suffices if it matches a record."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

import flambeau
from flambeau import codegen
from flambeau.compiler.cache import trace_cache
from flambeau.compiler.cache.trace_cache import TraceRecord
from tests.compiled_code import cache_files

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")

BEGIN = """
import sys
import flambeau as torch

torch.manual_seed(0)
given = iter(sys.argv[1:])

def calls(function, *arguments):
    '''Prints after how many calls there is a program, and whether all results are those of the function.'''
    made = torch.compile(function)
    first, right = None, True
    for i, args in enumerate(arguments):
        result = made(*args)
        right = right and torch.equal(result, function(*args))
        if first is None and any(kind.entries for kind in made._signatures.values()):
            first = i + 1
    captured = sum(0 if kind.entries else 1 for kind in made._signatures.values())
    print(first, right)
"""


@pytest.fixture
def run(tmp_path):
    """Runs programs in processes of their own, which share what they keep."""
    def running(program, *arguments, **environment):
        done = subprocess.run([sys.executable, "-c", BEGIN + program, *map(str, arguments)], capture_output=True,
                              text=True, check=False, cwd=Path(flambeau.__file__).parent.parent,
                              env={**os.environ, "FLAMBEAU_CACHE_DIR": str(tmp_path), **environment})
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return running


TRAINING = """
model = torch.nn.Sequential(torch.nn.Linear(4, 8, bias=False), torch.nn.BatchNorm1d(8), torch.nn.Tanh(),
                            torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=float(next(given)))

@torch.compile
def step(x, y):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss

losses, programs = [], []
for _ in range(6):
    x = torch.randn(16, 4)
    losses.append(step(x, x.sum(1, keepdim=True)).item())
    programs.append(sum(len(kind.entries) for kind in step._signatures.values()))
print(programs, [f"{x:.4f}" for x in losses], [f"{x.sum().item():.4f}" for x in model.buffers()])
"""


def test_training_is_compiled_after_one_step(run):
    first = run(TRAINING, 0.01)
    assert first.startswith("[0, 1, 1, 1, 1, 1]")
    assert run(TRAINING, 0.01) == first.replace("[0, 1, 1, 1, 1, 1]", "[1, 1, 1, 1, 1, 1]")
    other = run(TRAINING, 0.02)  # a learning rate is free, but one that no process agreed on is looked at twice
    assert other.split("]")[1] != first.split("]")[1]


CODE = """
factor, table = float(next(given)), {"shift": 1.0, "other": next(given)}

def function(x):
    return (x * factor + table["shift"]).sum()

calls(function, *[(torch.ones(3),)] * 4)
"""


def test_guards_must_hold(run):
    assert run(CODE, 2, "a") == "2 True"
    assert run(CODE, 2, "a") == "1 True"
    assert run(CODE, 3, "a") == "2 True"
    assert run(CODE, 2, "b") == "2 True"
    assert run(CODE, 2, "a") == "1 True"


def test_the_code_must_be_equal(run):
    assert run(CODE, 2, "a") == "2 True"
    assert run(CODE.replace("factor + table", "factor + 1 * table"), 2, "a") == "2 True"
    assert run(CODE.replace("def function(x):", "def function(x):\n    # slowly\n"), 2, "a") == "1 True"


def test_argument_metadata_must_be_equal(run):
    assert run(CODE, 2, "a") == "2 True"
    assert run(CODE.replace("ones(3)", "ones(4)"), 2, "a") == "2 True"
    assert run(CODE.replace("ones(3)", "ones(3, dtype=torch.float64)"), 2, "a") == "2 True"
    assert run(CODE.replace("ones(3)", "ones(3, requires_grad=True)"), 2, "a") == "2 True"


COUNTING = """
count = 0

def function(x):
    global count
    count += 1
    return x * 2

calls(function, *[(torch.ones(3),)] * 6)
print(count)
"""


def test_per_call_state_is_not_cached(run):
    for _ in range(3):
        assert run(COUNTING) == "None True\n12"


FREE = """
known = torch.arange(3.0)
batches = [known if name == "known" else torch.full((3,), float(name)) for name in given]

def function(x):
    return x * 2 + known

calls(function, *[(x,) for x in batches])
"""


def test_unpinned_arguments_stay_unpinned_in_another_process(run):
    assert run(FREE, 1, 2, 3, 4) == "2 True"
    assert run(FREE, 1, 2, 3, 4) == "1 True"
    assert run(FREE, "known", 2, "known", 4, 5).endswith("True")
    assert run(FREE, 5, "known", 6) == "1 True"


FIXED = """
x = torch.arange(3.0)
y = torch.arange(3.0) + float(next(given))

def function(a):
    return a * 2 + x

calls(function, (x,), (x,), (x,), (y,), (x,), (y,))
"""


def test_possibly_aliased_arguments_stay_pinned(run):
    for shift in (1, 1, 2):
        assert run(FIXED, shift).endswith("True")


PASSING = """
def function(x):
    parts = []
    for i in range(3):
        parts.append(x * i)
    return sum((each for each in parts), torch.zeros(3))

calls(function, *[(torch.ones(3),)] * 3)
"""


def test_objects_created_by_the_call_are_not_guarded(run):
    assert run(PASSING) == "2 True"
    assert run(PASSING) == "1 True"


def test_damaged_entries_are_ignored(run, tmp_path):
    assert run(PASSING) == "2 True"
    for file in cache_files(tmp_path):
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
    assert run(PASSING) == "2 True"
    assert run(PASSING) == "1 True"


RANDOM = """
import random
stream = random.Random(int(next(given)))

def function(x):
    return torch.dropout(x, 0.5, True) + torch.rand(3)

made = torch.compile(function)
print([made(torch.ones(3)).tolist() for _ in range(4)])
"""


def test_random_numbers_are_the_same_in_every_process(run):
    assert run(RANDOM, 1) == run(RANDOM, 1) == run(RANDOM, 2)


def test_records_of_one_key_are_limited(tmp_path, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    all_known = [TraceRecord(frozenset({str(i)}), frozenset({"x"}), (True, False))
                 for i in range(trace_cache.MAX_RECORDS + 3)]
    for each in all_known:
        trace_cache.store("a run", each)
    assert trace_cache.load("a run") == all_known[-trace_cache.MAX_RECORDS:]
    again = all_known[-2]._replace(free=(True, True))
    trace_cache.store("a run", again)
    assert trace_cache.load("a run") == [*all_known[-trace_cache.MAX_RECORDS:-2], all_known[-1], again]


def test_all_common_guards_of_a_record_must_match():
    known = TraceRecord(frozenset({"a", "b"}), frozenset())

    nothing = types.SimpleNamespace(guards={})
    assert known.matching_guards(nothing) is None
    assert TraceRecord(frozenset(), frozenset()).matching_guards(nothing) == []
