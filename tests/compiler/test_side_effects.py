"""Side effects of compiled functions: once and in order, also in backward passes, checkpoints, warnings and results."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.utils.checkpoint import checkpoint
from tests.compiler.eager_comparison import numbers, programs, reasons, same

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


def custom(backward: Any) -> Any:
    """A custom Function that doubles, with this backward."""
    return type("Doubled", (torch.autograd.Function,), {
        "forward": staticmethod(lambda ctx, x: [setattr(ctx, "count", 1), ctx.save_for_backward(x), x * 2][-1]),
        "backward": staticmethod(backward)})


def appending(log):
    return lambda ctx, g: [log.append(1), g * 2 + len(log)][1]


def counting_in_context(log):
    def backward(ctx, g):
        ctx.count += 1
        return g * ctx.count

    return backward


def writing(log):
    count = torch.zeros(2)

    def backward(ctx, g):
        count.add_(1)
        log.append(count.sum().item())
        return g * 2

    return backward


def with_local_list(log):
    def backward(ctx, g):
        found = []
        found.append(g * 2)
        return found[0]

    return backward


def counting_by_attribute(log):
    class Counter:
        count = 0

        def step(self):
            self.count += 1
            return self.count

    counter = Counter()
    return lambda ctx, g: g * counter.step()


BACKWARDS = [appending, counting_in_context, writing, with_local_list, counting_by_attribute,
             lambda log: lambda ctx, g: [print("backward"), g][1], lambda log: lambda ctx, g: g * torch.rand(3)]


@pytest.mark.parametrize("make", BACKWARDS)
def test_backward_of_custom_functions(make, capsys):
    """The pass that traces the joint graph leaves no effects."""
    seen = []
    for compiled in (False, True):
        torch.manual_seed(0)
        log: list[Any] = []
        f = custom(make(log))

        def function(x, f=f):
            return (f.apply(x).sin() * x).sum()

        made = torch.compile(function) if compiled else function
        seen.append([])
        for i in range(6):
            x = numbers(3, seed=i).requires_grad_()
            made(x).backward()
            seen[-1].append((x.grad, [*log], torch.get_rng_state().tolist(), capsys.readouterr().out))
        if compiled and make is with_local_list:
            assert programs(made) == 1, reasons(made)
    for got, want in zip(seen[1], seen[0], strict=True):
        same(got, want)


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("how", ["pure", "list", "attribute", "print"])
def test_checkpointed_functions(how, use_reentrant, capsys):
    """They run twice, as in eager code, if they have effects; a pure one is part of the program."""
    layer = torch.nn.Linear(3, 3)
    layer.count, log = 0, []

    def block(x):
        if how == "list":
            log.append(1)
        if how == "attribute":
            layer.count += 1
        if how == "print":
            print("block")
        return layer(x).tanh()

    def function(x):
        return checkpoint(block, x * 2, use_reentrant=use_reentrant).sum()

    made = torch.compile(function)
    for i in range(5):
        results = []
        for f in (function, made):
            layer.count, x = 0, numbers(2, 3, seed=i).requires_grad_()
            log.clear()
            f(x).backward()
            results.append((x.grad, len(log), layer.count, capsys.readouterr().out))
        same(*reversed(results))
    assert (programs(made) == 1) is (how == "pure"), reasons(made)


def test_unpack_hooks_run_once():
    log: list[str] = []

    def pack(x):
        log.append("pack")
        return x

    def unpack(x):
        log.append("unpack")
        return x

    def function(x):
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            return (x.exp() * x).sum()

    made = torch.compile(function)
    for i in range(5):
        counts = []
        for f in (function, made):
            log.clear()
            x = numbers(3, seed=i).requires_grad_()
            f(x).backward()
            counts.append([*log])
        assert counts[0] == counts[1]


def test_warnings_of_each_call():
    def f(x):
        warnings.warn("careful", stacklevel=1)
        return x * 2

    made = torch.compile(f)
    for _ in range(5):
        found = []
        for function in (f, made):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                function(numbers(3))
            found.append([str(each.message) for each in caught])
        assert found[0] == found[1] != []


KNOWN = [numbers(2)]


def test_identity_of_containers_in_results():
    """A replay returns the caller's containers, and those that outlive the call, themselves."""
    holder = torch.nn.Identity()
    holder.found = {"a": 1}

    def function(x, items):
        new = [x + 1]
        return items, (x * 2, {"items": items}), KNOWN, holder.found, new, [new], {1, 2}

    made = torch.compile(function)
    previous: list[Any] = []
    for i in range(6):
        items = [numbers(2, seed=i)]
        result = made(numbers(2), items)
        same(result[1][0], numbers(2) * 2)
        assert result[0] is items
        assert result[1][1]["items"] is items
        assert result[2] is KNOWN
        assert result[3] is holder.found
        assert result[5][0] is result[4]
        assert all(result[k] is not each[k] for k in (4, 6) for each in previous)
        previous.append(result)


def test_retraces_leave_no_effects():
    """A function is retraced for other numbers; branches that no call has taken are not run for them."""
    results = []
    for compiled in (False, True):
        weight = torch.nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([weight], lr=1.0)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=3)
        log: list[Any] = []

        def note(n, log=log):
            log.append(n)

        def function(x, n, schedule=schedule, note=note):
            schedule.step(n)
            if n > 100:
                note(n)
            return x * n

        made = torch.compile(function) if compiled else function
        results.append([])
        for i in range(8):
            x = numbers(2, seed=i)
            results[-1].append((made(x, 3.0 + i), optimizer.param_groups[0]["lr"], schedule.num_bad_epochs, [*log]))
    same(*reversed(results))


@pytest.mark.parametrize("f", [lambda x: x.unique(), lambda x: torch.unique(x, return_inverse=True),
                               lambda x: torch.unique(x.view(3, 2), dim=0), torch.unique_consecutive, torch.bincount,
                               lambda x: x[x > 1], torch.argwhere])
def test_sizes_that_depend_on_data(f):
    made = torch.compile(lambda x: f(x + 1))
    for i in range(8):
        x = torch.randint(0, 3, (6,), generator=torch.Generator().manual_seed(i))
        same(made(x), f(x + 1))


def test_modes_of_functions_see_compiled_calls():
    class Zeros(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return torch.zeros(2) if func is torch.add else func(*args, **(kwargs or {}))

    made = torch.compile(lambda x: torch.add(x, 1) * 2)
    for i in range(6):
        if i % 2:
            with Zeros():
                same(made(torch.ones(2)), torch.zeros(2))
        else:
            same(made(torch.ones(2)), torch.full((2,), 4.0))


def test_wrapped_functions_are_compiled():
    """A function that cannot be one program is divided inside of a decorator's wrapper, too."""
    items: list[Any] = []

    def compute(x):
        return x.sin() * 2 + x

    @torch.no_grad()
    def function(x):
        y = compute(x).exp()
        items.append(len(items))
        return y * len(items) - y.sum()

    made = torch.compile(function)
    for i in range(48):
        x = numbers(3, seed=i)
        found = made(x)
        expected = compute(x).exp()
        same(found, expected * (i + 1) - expected.sum())
    callee = next(iter(made.split._callees.values()))
    assert sum(programs(part) for _, part in callee.split.parts.values()) > 0


def test_closures_of_functions_with_breaks_are_compiled():
    """A nested function is a part, though the function that it belongs to runs in Python."""
    layer = torch.nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(layer.parameters(), lr=0.5, max_iter=3)

    def step(x, y):
        def closure():
            optimizer.zero_grad()
            loss = ((layer(x) - y) ** 2).mean()
            loss.backward()
            return loss
        return optimizer.step(closure)

    made = torch.compile(step)
    begin = [p.detach().clone() for p in layer.parameters()]
    outcomes = []
    for f in (step, made):
        optimizer.state.clear()
        with torch.no_grad():
            for p, q in zip(layer.parameters(), begin, strict=True):
                p.copy_(q)
        outcomes.append([(f(numbers(5, 3), numbers(5, 1, seed=1)).detach(), [p.detach().clone() for p in begin])
                         for _ in range(5)])
    same(*reversed(outcomes), tolerance=1e-3)
    assert [programs(part) for _, part in made.split.parts.values()] == [1]


def test_whole_graphs_have_no_effects():
    """`fullgraph=True` raises at the first call."""
    made = torch.compile(lambda x: [print("effect"), x][1], fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="print"):
        made(numbers(2))


def test_callbacks_of_the_garbage_collector_are_no_calls_of_the_function():
    calls = []

    def callback(phase, info):
        calls.append(phase)

    def loop(x, s):
        t = 0.0
        while t < s:
            t = t + [[s]][0][0] / 4000
        return x * t

    step, before = torch.compile(loop), gc.get_threshold()
    gc.callbacks.append(callback)
    gc.set_threshold(50)
    try:
        for s in (0.5, 0.7, 0.9, 0.9):
            assert torch.equal(step(torch.ones(2), s), loop(torch.ones(2), s))
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(callback)
    assert calls
