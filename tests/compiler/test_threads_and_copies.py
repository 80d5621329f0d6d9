"""Compiled functions in several threads, in several processes, pickled and copied."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

import flambeau as torch
from flambeau import codegen, nn
from tests.compiled_code import cache_files
from tests.compiler.eager_comparison import compiled_of, numbers, programs, same

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


@pytest.fixture
def switching():
    """Threads take turns often, in the middle of things."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Let threads, of which each has a number, begin at once; what one raises is raised here."""
    start, wrong = threading.Barrier(count), []

    def run(number: int) -> None:
        start.wait()
        try:
            work(number)
        except BaseException as error:
            wrong.append(error)

    crew = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    if wrong:
        raise wrong[0]


def scores(x, w):
    hidden = torch.tanh(x @ w)
    return torch.log_softmax(hidden, -1), (hidden * x).sum()


@pytest.mark.usefixtures("switching")
def test_one_function_in_several_threads():
    made = torch.compile(scores)

    def work(number):
        for i in range(60):
            x, w = numbers(5, 4, seed=i), numbers(4, 4, seed=i + number)
            same(made(x, w), scores(x, w))

    in_threads(6, work)
    assert programs(made) == 1


@pytest.mark.usefixtures("switching")
@pytest.mark.parametrize("dynamic", [False, None])
def test_threads_with_different_signatures(dynamic):
    made = torch.compile(scores, dynamic=dynamic)

    def work(number):
        for i in range(40):
            size = 3 + (number + i // 10) % 5
            x, w = numbers(5, size, seed=i), numbers(size, size, seed=i + number)
            same(made(x, w), scores(x, w))

    in_threads(5, work)
    assert programs(made) == 5 if dynamic is False else 1 <= programs(made) <= 5


@pytest.mark.usefixtures("switching")
def test_each_thread_trains_its_own_model():
    """Captures begin at the same time, and each sees its own thread only."""
    def trained(seed, compiled):
        torch.manual_seed(seed)
        w1 = numbers(4, 8, seed=seed).requires_grad_()
        w2 = numbers(8, 1, seed=seed + 50).requires_grad_()
        optimizer = torch.optim.Adam([w1, w2], lr=0.02)

        def step(x, y):
            optimizer.zero_grad()
            loss = ((torch.tanh(x @ w1) @ w2 - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        run = torch.compile(step) if compiled else step
        for i in range(30):
            x = numbers(6, 4, seed=i)
            run(x, x.sum(1, keepdim=True))
        if compiled:
            assert programs(run) >= 1, [
                (kind.skip_reason, kind.mismatch, kind.num_traces) for kind in run._signatures.values()]
        return [w1.detach(), w2.detach()]

    expected = [trained(seed, False) for seed in range(4)]
    found = [None] * 4

    def work(number):
        found[number] = trained(number, True)

    in_threads(4, work)
    same(found, expected, 1e-4)


@pytest.mark.usefixtures("switching")
def test_backward_in_several_threads():
    w = numbers(4, 4, seed=3).requires_grad_()
    made = torch.compile(lambda x: (torch.tanh(x @ w) * x).sum())

    def work(number):
        for i in range(40):
            x = numbers(5, 4, seed=i + number)
            found, = torch.autograd.grad(made(x), w)
            expected, = torch.autograd.grad(made.function(x), w)
            same(found, expected, 1e-4)

    in_threads(4, work)


def test_reset_while_other_threads_call():
    made = torch.compile(scores)

    def work(number):
        for i in range(40):
            if number == 0 and i % 5 == 0:
                torch.compiler.reset()
            x, w = numbers(5, 4, seed=i), numbers(4, 4, seed=i + number)
            same(made(x, w), scores(x, w))

    in_threads(3, work)


# ----- copies -----------------------------------------------------------------------------

doubled = torch.compile(lambda x: x * 2)


def plus_one(x):
    return x + 1


compiled_plus_one = torch.compile(plus_one, recompile_limit=3)


def test_a_pickled_function_is_traced_again():
    for i in range(4):
        compiled_plus_one(numbers(3, seed=i))
    again = pickle.loads(pickle.dumps(compiled_plus_one))
    assert again.function is plus_one
    assert again.limit == 3
    assert programs(again) == 0
    for i in range(4):
        x = numbers(3, seed=i)
        same(again(x), x + 1)
    assert programs(again) == 1
    torch.compiler.reset()
    assert programs(again) == programs(compiled_plus_one) == 0


def test_unpicklable_functions_raise():
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(doubled)


@pytest.mark.parametrize("how", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copied_module_has_its_own_parameters(how):
    model = torch.compile(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)))
    x = numbers(5, 3)
    for _ in range(4):
        before = model(x).detach()
    other = how(model)
    assert type(other) is type(model)
    with torch.no_grad():
        for p in other.parameters():
            p.mul_(2)
    assert compiled_of(other).function is other._orig_mod
    for i in range(4):
        x = numbers(5, 3, seed=i)
        same(other(x).detach(), other._orig_mod(x).detach())
        same(model(x).detach(), model._orig_mod(x).detach())
    same(model(numbers(5, 3)).detach(), before)
    assert programs(other) == 1
    assert not {id(p) for p in model.parameters()} & {id(p) for p in other.parameters()}


def test_a_copied_function_is_traced_again():
    scale = torch.tensor(2.0)
    made = torch.compile(lambda x: x * scale)
    for i in range(4):
        made(numbers(3, seed=i))
    again = copy.copy(made)
    assert again is not made
    assert programs(again) == 0
    for i in range(4):
        x = numbers(3, seed=i)
        same(again(x), x * 2)


# ----- processes --------------------------------------------------------------------------

PROGRAM = """
import flambeau as torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
@torch.compile(fullgraph=True)
def step(x):
    optimizer.zero_grad()
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()
    return loss
for _ in range(6):
    loss = step(torch.randn(8, 6))
print(len(step._signatures), sum(len(kind.entries) for kind in step._signatures.values()), f"{loss.item():.4f}")
"""


def started(folder):
    return subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=os.environ | {"FLAMBEAU_CACHE_DIR": str(folder)})


def test_processes_share_a_folder_and_repair_it(tmp_path):
    first, second = started(tmp_path), started(tmp_path)
    outcomes = [process.communicate() for process in (first, second)]
    said = outcomes[0][0]
    assert [out for out, _ in outcomes] == [said] * 2, outcomes
    assert said.startswith("1 1 "), outcomes
    entries = cache_files(tmp_path)
    for i, entry in enumerate(entries):
        entry.write_bytes([b"", entry.read_bytes()[:100], b"no code"][i % 3])
    assert started(tmp_path).communicate()[0] == said
    (tmp_path / "file").write_text("")
    assert started(tmp_path / "file").communicate()[0] == said  # in which nothing can be written
