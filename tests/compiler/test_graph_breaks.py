"""Functions with graph breaks are split: compiled parts, and between them what cannot be compiled."""

from __future__ import annotations

import contextlib
import math
import time
from typing import Any

import pytest

import flambeau as torch
from flambeau import codegen, nn
from tests.compiler.eager_comparison import caches, compiled_of, counted_captures, numbers, same

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")

WEIGHT = numbers(4, 4, seed=7).requires_grad_()
COUNTER = [0]


def printed(x):
    y = x * 2
    print("between", tuple(y.shape))
    return (y + 1).sin()


def printed_twice(x):
    y = x @ WEIGHT
    print("first")
    z = y.tanh() * y
    print("second", end="\n")
    return z.sum() + y.mean()


def item_in_an_expression(x):
    y = (x @ WEIGHT).tanh() * round(x.sum().item())
    return y.exp().sum()


def two_items_in_one_call(x):
    return torch.clamp(x @ WEIGHT, min=math.floor(x.min().item()), max=math.floor(x.max().item()) + 1) * 2


def keywords_and_containers(x):
    parts = {"a": x.sin(), "n": len(str(x.sum().tolist())) * 0, "b": [x.cos(), x.exp()]}
    return parts["a"] * parts["b"][0] + parts["b"][1] + parts["n"]


def conditional_expression(x):
    y = x.exp()
    z = y * 2 if y.sum().item() > 0 else y * 3
    w = y.sum().item() > 0 and (y.mean().item() > 100 or z)
    return w + 1


def branch_on_an_item(x):
    y = x @ WEIGHT
    if y.sum().item() > 0:
        z = y.exp() * 2
        z = z + 1
    else:
        z = y.sin() - 1
    return z.sum()


def break_in_an_arm(x):
    y = x.sin()
    if y.sum() > -100:
        y = y * 3
        print("arm")
        y = y.cos() + y
    return (y * y).sum()


def early_return(x):
    y = x * x
    if y.sum().item() < 0:
        return y.sin()
    z = y.cos()
    print("late")
    return z * y


def for_loop(x):
    total = x * 0
    for i in range(3):
        x = (x @ WEIGHT).tanh()
        print("step", i)
        total = total + x.square()
    return total.sum()


def for_loop_with_break_and_else(x):
    for i in range(5):
        x = x * 1.5 + 1
        if x.abs().sum().item() > 40:
            print("large", i)
            break
        if i == 0:
            continue
        x = x.sin() * 2
    else:
        x = x * 10
    return x + 1


def while_loop(x):
    x = x.abs() + 1
    steps = 0
    while x.sum().item() > 1:
        x = x * 0.5
        steps += 1
    return x * steps


def under_no_grad(x):
    y = x @ WEIGHT
    with torch.no_grad():
        z = y.square().sum()
        print("no grad", z.requires_grad)
        w = z.sqrt() * y
    return y * w + z


def under_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ WEIGHT
        print(y.dtype)
        z = y @ WEIGHT
    return z.float().sum()


def try_finally(x):
    try:
        y = x.exp() * 2
        print("inside")
        y = y.sin() + x
    finally:
        print("finally")
    return y * 3


def caught(x):
    y = x * 2
    try:
        y = y + 1
        y = y @ torch.ones(3, 3)
        y = y + 5
    except RuntimeError as error:
        print("caught", type(error).__name__)
        y = y * 10
    return y + 1


def suppressed(x):
    y = x * 2
    with contextlib.suppress(ZeroDivisionError):
        y = y + 1
        print("suppressed")
        y = y @ WEIGHT * (1 / 0)
        y = y + 100
    return y * 3


def helper(x, scale=2.0):
    y = x.sin() * scale
    print("helper")
    return y.cos() + x


def in_a_callee(x):
    y = x @ WEIGHT
    z = helper(y.tanh(), scale=3.0) * y
    return z.exp().sum()


def in_a_callee_of_a_callee(x):
    return in_a_callee(x * 2) * 3 + x.sum()


def in_a_loop_of_callees(x):
    return sum([helper(x + i) for i in range(3)])


def closure(x):
    scale = x.mean()

    def scaled(v):
        return v * scale

    y = scaled(x.exp())
    print("closure")
    return scaled(y).sum()


def nonlocal_closure(x):
    count = 0

    def bump(v):
        nonlocal count
        count += 1
        print("bump", count)
        return v * count

    return bump(x.exp()) + bump(x)


def comprehension(x):
    return torch.stack([x.sin() * round(part.item()) for part in x.sum(1)]).sum()


def generator_in_a_call(x):
    return sum(part.sin() * round(part.item()) for part in x.sum(1).unbind())


def appended(x):
    parts = []
    for i in range(3):
        y = (x * (i + 1)).sin() + x
        parts.append(y)
        print(len(parts))
    return torch.cat(parts) * 2


def aliased_list(x):
    first = second = [x.sin() + 1]
    print("aliased")
    first.append(x.cos())
    return torch.stack(second) * 2


def new_set(x):
    seen = set()
    y = x * 2 + 1
    print(sorted(seen))
    seen.add(3)
    return y * len(seen)


def masked(x):
    y = x.sin() * 2
    z = y[y > 0]
    return z.exp().sum() + y.mean()


def nonzero_sizes(x):
    rows = (x.sum(1) > 0).nonzero().squeeze(1)
    return (x[rows] @ WEIGHT).sum() * 2


def unbound_on_one_path(x):
    if x.sum() > 1e9:
        y = x * 2
    print("path")
    try:
        return y + 1
    except UnboundLocalError as error:
        print(error)
    return x * 3 + 1


def deleted(x):
    y = x.sin() + 1
    z = y * 2
    del y
    print("y" in dir())
    return z + x


def deleted_between(x):
    y = x.sin() + 1
    z = y * 2
    del y
    print("deleted")
    y = z.exp()
    return y + x


def in_place(x):
    y = x.clone()
    y.mul_(2)
    print("in place")
    y.add_(WEIGHT.detach().sum())
    y[0] = 1
    return y.sin()


def views(x):
    y = x.sin()
    row = y[1]
    print(row.shape)
    y.mul_(3)
    return row * 2 + y


def random_numbers(x):
    y = x + torch.rand(4, 4)
    print("random")
    return nn.functional.dropout(y, 0.5) * torch.randn(4)


def backward_inside(x):
    WEIGHT.grad = None
    loss = (x @ WEIGHT).square().mean()
    print("loss")
    loss.backward()
    grad = WEIGHT.grad * 2
    WEIGHT.grad = None
    return grad.sum()


def graph_break(x):
    y = x.sin() + 1
    torch._dynamo.graph_break()
    return y.cos() * 2


def the_time(x):
    y = x.sin() + 1
    start = time.perf_counter()
    z = y.cos() * 2
    return z + torch.full((), start) * 0


def counted(x):
    y = x.sin() + 1
    COUNTER[0] += 1
    return y.cos() * 2


def raises(x):
    y = x.sin() + 1
    print("raising")
    z = y * 2
    if x[0, 0].item() > 0:
        raise ValueError(f"bad {tuple(z.shape)}")
    return z


def assertion(x):
    y = x.exp()
    if not y.sum().item() > 0:
        raise AssertionError
    return y * 2 + 1


def walrus(x):
    if (total := x.abs().sum().item()) > 0:
        x = x * 2 + round(total) * 0
    return x.sin() + 1


def matched(x):
    y = x * 2
    match round(y.sum().item()) * 0:
        case 0:
            y = y.sin()
        case _:
            y = y.cos()
    return y + 1


def star_arguments(x, *more, scale=1.0, **options):
    y = x.sin() * scale
    print(len(more), sorted(options))
    return y + sum(more) + len(options)


def several_results(x):
    y, (z, w) = x.sin(), (x.cos(), [x.exp()])
    print("several")
    return {"y": y * 2, "z": z + 1}, w


@torch.no_grad()
def decorated(x):
    y = x.sin() + 1
    print("decorated")
    return y.cos() * 2


FUNCTIONS = [printed, printed_twice, item_in_an_expression, two_items_in_one_call, keywords_and_containers,
             conditional_expression, branch_on_an_item, break_in_an_arm, early_return, for_loop,
             for_loop_with_break_and_else, while_loop, under_no_grad, under_autocast, try_finally, caught, suppressed,
             in_a_callee, in_a_callee_of_a_callee, in_a_loop_of_callees, closure, nonlocal_closure, comprehension,
             generator_in_a_call, appended, aliased_list, new_set, masked, nonzero_sizes, unbound_on_one_path, deleted,
             deleted_between, in_place, views, random_numbers, backward_inside, graph_break, the_time, counted, raises,
             assertion, walrus, matched, star_arguments, several_results, decorated]
#: functions that are not split: generators' frames, and variables that closures assign
NOT_SPLIT = {nonlocal_closure, deleted, counted}  # `counted` is one program


def outcome(function: Any, x: Any, capsys: Any) -> tuple[Any, ...]:
    """The result of a call, its gradients, what it printed, its error, and the state of the generator after it."""
    torch.manual_seed(3)
    WEIGHT.grad = None
    error: Any = None
    result = None
    try:
        result = function(x)
        leaves = [t for t in torch.utils._pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]
        if any(t.requires_grad for t in leaves):
            sum(t.float().sum() for t in leaves if t.requires_grad).backward()
    except Exception as raised:
        error = type(raised), str(raised), user_lines(raised)
    state = torch.get_rng_state()
    return result, x.grad, WEIGHT.grad, capsys.readouterr().out, error, state


def user_lines(error: BaseException) -> list[int]:
    """The lines of this file in a traceback, without repetitions of a function in several parts."""
    lines: list[int] = []
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == __file__ and trace.tb_frame.f_code.co_name != "outcome":
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    return lines[-1:]


@pytest.mark.parametrize(("function", "requires_grad"), [
    *((f, True) for f in FUNCTIONS), *((f, False) for f in FUNCTIONS[::6])], ids=lambda x: getattr(x, "__name__", x))
def test_functions_with_breaks(function, requires_grad, capsys):
    made = torch.compile(function)
    for i in range(10):
        found, expected = [outcome(f, numbers(4, 4, seed=i % 5).requires_grad_(requires_grad), capsys)
                           for f in (made, function)]
        same(found, expected, 5e-3 if function is under_autocast else 1e-5)
    split = compiled_of(made).split
    assert (split is not None and split.is_ready) is (function not in NOT_SPLIT)


def gradient_of_a_variable(x):
    h = x.exp() + x
    y = (h @ WEIGHT).sin()
    print("variable")
    g, = torch.autograd.grad(y.sum(), h, retain_graph=True)
    return y + g


def retained_gradient(x):
    h = x.exp() * 1.5
    y = h * h
    print("retained")
    if h.requires_grad:
        h.retain_grad()
        y.sum().backward(retain_graph=True)
        return y * 1, h.grad * 2
    return y


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)
        self.__calls = 0

    def forward(self, x, scale=1.0):
        y = self.linear(x).tanh()
        self.__calls += 1
        print("block", self.__calls > 0)
        return y * scale + x


class Derived(Block):
    def forward(self, x, scale=1.0):
        y = super().forward(x * 2, scale=scale)
        return y.exp() * 0.5


def networks():
    """Modules that break in `forward`, in a submodule's, in a sequence, and in a method of the base class."""
    return {"block": Block(4), "derived": Derived(4),
            "sequence": nn.Sequential(nn.Linear(4, 4), Block(4), nn.ReLU(), Derived(4)),
            "list": Layers()}


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block(4), nn.Linear(4, 4), Block(4)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x) + 1
        return x.sum()


@pytest.mark.parametrize("name", ["block", "derived", "sequence", "list"])
def test_modules_with_breaks(name, capsys):
    torch.manual_seed(0)
    module = networks()[name]
    made = torch.compile(module)
    hooked = []
    for i in range(13):
        outcomes = []
        for run in (made, module):
            module.zero_grad()
            x = numbers(4, 4, seed=i % 5).requires_grad_()
            y = run(x)
            y.sum().backward()
            outcomes.append([y, x.grad, [p.grad for p in module.parameters()], capsys.readouterr().out, len(hooked)])
            hooked.clear()
        same(*outcomes)
        if i == 11:
            module.register_forward_hook(lambda *_: hooked.append(1))
    split = made._run.split
    assert split.is_ready
    parts = [part for each in (split, *split.called.values()) for _, part in each.parts.values()]
    assert sum(bool(cache.entries) for part in parts for cache in caches(part)) >= 2


@pytest.mark.parametrize("function", [gradient_of_a_variable, retained_gradient], ids=lambda f: f.__name__)
@pytest.mark.parametrize("requires_grad", [True, False])
def test_gradients_of_variables(function, requires_grad, capsys):
    made = torch.compile(function)
    for i in range(10):
        found, expected = [outcome(f, numbers(4, 4, seed=i % 5).requires_grad_(requires_grad), capsys)
                           for f in (made, function)]
        same(found, expected)


def test_programs_of_parts():
    """Loops reuse the programs of their bodies, and calls with other shapes get programs of their own."""
    made = torch.compile(for_loop)
    for i in range(6):
        made(numbers(4, 4, seed=i))
    assert made.split is not None
    for _ in range(3):
        made(numbers(2, 4))
    counts = [len(cache.entries) for _, part in made.split.parts.values() for cache in part._signatures.values()]
    assert counts == [1] * len(counts)
    assert len(made.split.parts) == 4
    before = {key: part for key, (_, part) in made.split.parts.items()}
    made(numbers(4, 4))
    assert {key: part for key, (_, part) in made.split.parts.items()} == before


@pytest.mark.parametrize(("function", "reason"), [
    (nonlocal_closure, "nonlocal"), (deleted, "reads its own frame"),
    (lambda x: torch.autograd.grad(x.sum(), x, create_graph=True)[0] * x.sum().item(), "differentiates gradients")],
    ids=["nonlocal", "frame", "create_graph"])
def test_functions_that_cannot_be_split(function, reason, capsys):
    found = torch.compile.explain(function)(numbers(4, 4).requires_grad_())
    assert found.graph_count == 0
    assert "It cannot be split: " in str(found)
    assert reason in found.not_split


def test_source_that_was_changed(tmp_path):
    file = tmp_path / "changed.py"
    file.write_text("def f(x):\n    y = x * 2\n    print('a')\n    return y + 1\n")
    space = {"__name__": "changed"}
    exec(compile(file.read_text(), str(file), "exec"), space)
    file.write_text("def f(x):\n    y = x * 3\n    print('a')\n    return y + 1\n")
    made = torch.compile(space["f"])
    for _ in range(5):
        assert made(torch.ones(2)).tolist() == [3, 3]
    assert made.split.failure == "its source is not what was compiled"


def test_sizes_that_depend_on_data():
    """After several sizes the statements that use them run in Python; what does not depend on them stays compiled."""
    def function(x):
        y = x.sin() * 2
        z = y[:round(x.sum().item())]
        return z.exp().sum() + y.mean()

    made = torch.compile(function)
    for i in range(24):
        x = torch.full((24,), i / 24)
        same(made(x), function(x))
    with counted_captures() as captures:
        for i in range(24):
            x = torch.full((24,), (i + 0.5) / 24)
            same(made(x), function(x))
    assert not captures
    assert [len(cache.entries) for _, part in made.split.parts.values() for cache in part._signatures.values()] == [1]
