"""Compiled functions whose numbers vary: one program reads them, and guards where it does not hold."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen

from .eager_comparison import compiled_of, counted_captures, same

pytestmark = pytest.mark.skipif(not codegen.available(), reason="nothing is compiled without llvmlite")
F = torch.nn.functional
FLOATS = (0.31, 0.27, 0.44, 0.9, 0.05, 0.31, -0.2, -0.6, 0.0, 1.0, 1e-3, float("inf"), 1.7)
INTEGERS = (5, 7, 3, 2, 1, 0, 12, -4, -3, 30, 100, 5)


def numbers(*shape):
    return torch.from_numpy(np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32"))


def steps(x, s):
    for _ in range(3):
        x = x - s * torch.sin(x) / (1 + s)
    return x


def cosine_schedule(x, n):
    return x * 0.5 * (1 + math.cos(math.pi * n / 100)) + math.sqrt(n + 1) * math.exp(-n / 10)


#: functions of a tensor and a float, and whether one program serves many values
FLOAT_FUNCTIONS = {
    "affine": lambda x, s: torch.tanh(x * s) + s,
    "computed": lambda x, s: x * (1 - s) + s * s - 2 * x / (s + 3),
    "reversed": lambda x, s: (s - x) * (s / (x * x + 1)),
    "powers": lambda x, s: x.abs() ** s,
    "exponents": lambda x, s: (s + 3) ** x,
    "alpha": lambda x, s: torch.add(x, x, alpha=s),
    "addcmul": lambda x, s: torch.addcmul(x, x, x, value=s),
    "baddbmm": lambda x, s: torch.baddbmm(x[None], x[None], x[None].mT, alpha=s)[:, :4, :4] if x.ndim == 1 else x * s,
    "leaky_relu": lambda x, s: F.leaky_relu(x, s),
    "elu": lambda x, s: F.elu(x, s),
    "clamp": lambda x, s: x.clamp(max=s),
    "comparison": lambda x, s: torch.where(x > s, x, s),
    "masked_fill": lambda x, s: x.masked_fill(x > 0, s),
    "full": lambda x, s: x + torch.full_like(x, s) + torch.full((6,), s) + torch.tensor(s),
    "in place": lambda x, s: x.clone().mul_(s).add_(1).sub_(x, alpha=s),
    "steps": steps,
    "temperature": lambda x, s: torch.softmax(x / s, -1),
    "math": lambda x, s: x * math.exp(s) + math.sin(s),
    "least": lambda x, s: x * min(s, 0.5) + max(s, 0.1),
    "branch": lambda x, s: x * s if s > 0.3 else x - s,
    "truth": lambda x, s: x * s if s else x,
    "equal": lambda x, s: x * 2 if s == 0.44 else x + 1,
    "text": lambda x, s: x * len(f"{s}"),
    "converted": lambda x, s: x * float(s),
    "exact integer": lambda x, s: x * int(s * 10) if math.isfinite(s) else x,
    "listed": lambda x, s: x + torch.tensor([s, 1.0, 2.0, 3.0, s, s]),
    "table": lambda x, s: x * {0.31: 2.0}.get(s, 3.0),
    "class": lambda x, s: x * s if type(s) is float else x + s,
    "returned": lambda x, s: (x + 1, s, s * 2),
    "lerp": lambda x, s: torch.lerp(x, x * x, s),
    "dropout": lambda x, s: F.dropout(x, s) if 0 <= s <= 1 else x * s,
    "remainder": lambda x, s: (x % s, x // s) if s else x,
    "linspace": lambda x, s: x + torch.linspace(0, s, 6) if math.isfinite(s) else x,
    "norm": lambda x, s: F.layer_norm(x, (6,), eps=abs(s)),
    "huber": lambda x, s: F.huber_loss(x, x * 2, delta=s) if s > 0 else x,
    "numpy": lambda x, s: x * float(np.exp(s)),
}
#: those that need several programs, or depend on the exact value
STATIC = {"baddbmm", "branch", "text", "converted", "exact integer", "listed", "table", "class", "lerp",
          "dropout", "remainder", "linspace", "numpy", "least"}
INTEGER_FUNCTIONS = {
    "affine": lambda x, n: torch.tanh(x * n) + n,
    "quotient": lambda x, n: x / (n + 200) + 1 / (n + 200),
    "schedule": lambda x, n: cosine_schedule(x, abs(n)),
    "integers": lambda x, n: torch.arange(6) * n + n,
    "warm-up": lambda x, n: x * min(1.0, n / 1000),
    "power": lambda x, n: x ** n,
    "branch": lambda x, n: x * n if n > 10 else x - n,
    "multiple": lambda x, n: x * n if n % 5 == 0 else x - n,
    "loop": lambda x, n: sum([x * i for i in range(n)], x),
    "slice": lambda x, n: x[:n].sum() * n,
    "created": lambda x, n: torch.ones(abs(n), 3).sum(0) * n,
    "index": lambda x, n: x[n % 6],
    "rolled": lambda x, n: torch.roll(x, n),
    "shifted": lambda x, n: x.long() << abs(n) % 8,
    "list": lambda x, n: [x, x * 2, x * 3][n % 3],
    "repeated": lambda x, n: x.repeat(max(n, 1)),
}


def check(f, g, x, values):
    for value in values:
        torch.manual_seed(1)
        try:
            expected = f(x, value)
        except (RuntimeError, IndexError, ValueError, ZeroDivisionError, OverflowError) as error:
            with pytest.raises(type(error)):
                g(x, value)
            continue
        torch.manual_seed(1)
        same(g(x, value), expected)


@pytest.mark.parametrize("name", FLOAT_FUNCTIONS)
def test_floats(name):
    f = FLOAT_FUNCTIONS[name]
    g = torch.compile(f)
    check(f, g, numbers(6), FLOATS)
    with counted_captures() as captures:
        check(f, g, numbers(6), [0.06 + 0.07 * i for i in range(12)])
    # calls with another tensor show that the function does not reach it otherwise: one, or two for two branches
    assert (len(captures) > 2) is (name in STATIC), len(captures)


@pytest.mark.parametrize("name", INTEGER_FUNCTIONS)
def test_integers(name):
    f = INTEGER_FUNCTIONS[name]
    check(f, torch.compile(f), numbers(6), (*INTEGERS, *range(2, 20)))


def test_a_number_that_counts_needs_few_programs():
    def f(x, n):
        return torch.tanh(x * n) / (n + 1)

    g = torch.compile(f)
    with counted_captures() as captures:
        for n in range(300):
            same(g(numbers(5), n), f(numbers(5), n))
    assert len(captures) <= 6
    assert compiled_of(g)._num_instances <= 5


@pytest.mark.parametrize("fullgraph", [False, True])
def test_gradients_and_updates_with_varying_numbers(fullgraph):
    def step(weight, x, rate, beta=1.0, options=None):
        loss = (torch.tanh(x @ weight) * beta).square().sum() + options["decay"] * weight.square().sum()
        gradient, = torch.autograd.grad(loss, weight)
        with torch.no_grad():
            weight.sub_(gradient, alpha=rate)
            weight.mul_(1 - rate * options["decay"])
        return loss.detach()

    compiled = torch.compile(step, fullgraph=fullgraph)
    mine, theirs = (numbers(4, 4).requires_grad_() for _ in range(2))
    with counted_captures() as captures:
        for i in range(30):
            arguments = {"rate": 0.1 * 0.9 ** i, "beta": 0.5 + 0.01 * i, "options": {"decay": 0.01 * (i + 2)}}
            same(compiled(mine, numbers(i + 2, 4), **arguments), step(theirs, numbers(i + 2, 4), **arguments))
            same(mine, theirs)
    assert len(captures) <= 8


def test_the_graph_of_results_reads_the_numbers_of_its_call():
    def loss(x, s):
        return (x * s).tanh().sum() * s

    g = torch.compile(loss)
    x, y = (numbers(5).requires_grad_() for _ in range(2))
    values = [0.1 * i for i in range(2, 12)]
    results = [(g(x, s), loss(y, s)) for s in values]
    for found, expected in reversed(results):  # another call has run between a forward pass and its backward pass
        x.grad = y.grad = None
        found.backward()
        expected.backward()
        same(found, expected)
        same(x.grad, y.grad)


def test_numbers_of_threads_do_not_mix():
    def f(x, s):
        return x * s + s

    g = torch.compile(f)
    for s in (0.2, 0.3, 0.4, 0.5):
        g(numbers(5), s)
    wrong = []

    def run(start):
        for i in range(200):
            s = start + i * 1e-3
            if not torch.allclose(g(numbers(5), s), numbers(5) * s + s):
                wrong.append(s)

    threads = [threading.Thread(target=run, args=(0.2 + 0.3 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_dynamic_false_and_checked_calls():
    def f(x, s):
        return torch.exp(-x * s)

    static, checked = torch.compile(f, dynamic=False), torch.compile(f, check=True)
    for s in (0.2, 0.2, 0.3, 0.3, 0.4, 0.5):
        same(static(numbers(5), s), f(numbers(5), s))
        same(checked(numbers(5), s), f(numbers(5), s))
    assert not compiled_of(static)._num_instances


def test_numbers_and_sizes_vary_together():
    def f(x, s, n):
        return F.softmax(x / s, -1)[:n] * n + x.shape[0]

    g = torch.compile(f)
    for i in range(2, 14):
        x = numbers(i + 20, 3)
        same(g(x, 0.3 + i, i), f(x, 0.3 + i, i))
    assert sum(len(each.entries) for each in compiled_of(g)._signatures.values()) <= 3


def test_zeros_of_either_sign_are_other_numbers():
    def f(x, n, zero):
        return x * n / (x * zero)

    g = torch.compile(f)
    for n in (2, 3, 4, 5):
        for zero in (0.0, -0.0):
            same(g(torch.ones(3), n, zero), f(torch.ones(3), n, zero))


def test_numbers_are_returned():
    def f(x, step, scale):
        return x * scale, step + 1, {"scale": scale * 0.5, "size": step * x.shape[0]}

    g = torch.compile(f)
    step, scale = other, factor = 2, 0.9
    with counted_captures() as captures:
        for i in range(20):
            found, expected = g(numbers(4 + i % 3), step, scale), f(numbers(4 + i % 3), other, factor)
            same(found, expected)
            step, scale, other, factor = found[1], found[2]["scale"], expected[1], expected[2]["scale"]
    assert len(captures) <= 6


def test_rounding_that_was_the_same_in_all_retraces():
    def f(x, n):
        return x + (6 / n // 2) * n

    check(f, torch.compile(f), numbers(6), (15, 12, 9, 2, 3, 1, 4))


def test_ranges_of_two_symbols_are_checked_at_all_their_ends():
    def f(x, n):
        return torch.ones(x.shape)[:n] - x[:n] * x

    g = torch.compile(f)
    for n, size in ((15, 6), (12, 7), (9, 5), (4, 6), (3, 3), (5, 8)):
        check(f, g, numbers(size), [n])

    def shorter(x, y):
        return x[:y.shape[0]] * 2

    g = torch.compile(shorter)
    for n, m in ((5, 20), (6, 30), (7, 40), (10, 5), (12, 12), (30, 7)):
        same(g(numbers(n), numbers(m)), shorter(numbers(n), numbers(m)))


def test_loops_that_decide_too_often_are_not_retraced_to_their_end():
    def f(x, s):
        t = 0.0
        while t < s:
            t = t + s / 4000
        return x * t

    check(f, torch.compile(f), numbers(3), (0.5, 0.7, 0.9, 0.9, 0.9))


def test_functions_that_write_to_globals_count_each_call_once():
    seen = []

    def f(x, s):
        seen.append(s)
        return x * s

    g = torch.compile(f)
    for s in (0.2, 0.3, 0.4, 0.5):
        same(g(numbers(3), s), numbers(3) * s)
    assert seen == [0.2, 0.3, 0.4, 0.5]
    assert all(type(s) is float for s in seen)
