"""The program cache: the next process replays its first call if all sources resolve and all guards hold.

Here the processes are one: what is compiled anew looks for what was left on disk, as another process would.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import functools
import math
import operator
import os
import random
import time
import types
import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.compiler.cache import program_cache
from flambeau.nn import functional as F
from tests.compiled_code import cache_files

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


@pytest.fixture(autouse=True)
def no_persistent_entries(tmp_path, monkeypatch):  # overrides the fixture of conftest.py
    """An empty cache folder for each test."""
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))


def run(function, calls):
    """The results of calls, and whether the first of them was recalled, not captured."""
    made = torch.compile(function)
    results = [made(*args) for args in calls]
    kinds = getattr(made, "__dict__", {}).get("_run", made)._signatures
    entries = [entry for kind in kinds.values() for entry in kind.entries]
    return results, bool(entries) and all(e.is_from_cache for e in entries), [e.bypass_reason for e in entries]


def plain(results):
    return [x.detach().numpy().copy() if isinstance(x, torch.Tensor) else x for x in results]


def after(make, first, then, *, recalled, calls=3):
    """Let one process run `make(first)`, the next one `make(then)`: what it gives is what is computed without both.

    Args:
        make: gives a function, what makes the arguments of the n-th call, and what else there is to see at the end.
        recalled: whether the next process is to make use of what the first left; None if it may.
    """
    function, argument, _ = make(first)
    run(function, [argument(i) for i in range(4)])
    function, argument, seen = make(then)
    results, was_recalled, _ = run(function, [argument(i) for i in range(calls)])
    found = plain([*results, *seen()])
    function, argument, seen = make(then)
    expected = plain([*[function(*argument(i)) for i in range(calls)], *seen()])
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-4, atol=1e-5)
    assert recalled is None or was_recalled is recalled


def data(i, *shape):
    return torch.from_numpy(np.random.default_rng(i).standard_normal(shape or (6, 4)).astype(np.float32))


def nothing():
    return []


# ----- what is recalled ---------------------------------------------------------------------


class Model(torch.nn.Module):
    def __init__(self, scale=1.0, activation=torch.tanh):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Linear(4, 8, bias=False), torch.nn.Linear(8, 3)
        self.norm = torch.nn.BatchNorm1d(8)
        self.scale, self.activation = scale, activation

    def forward(self, x):
        return self.second(self.activation(self.norm(self.first(x)))) * self.scale


def training(model, optimizer, schedule=None):
    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    def seen():
        return [*model.parameters(), *model.buffers(), *(p.grad for p in model.parameters())]

    return step, lambda i: (data(i),), seen


@pytest.mark.parametrize("optimizer", [
    lambda p: torch.optim.Adam(p, lr=0.1), lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.3),
    lambda p: torch.optim.SGD(p, lr=0.1), lambda p: torch.optim.RMSprop(p, lr=0.1),
    lambda p: torch.optim.Adadelta(p, lr=0.1), lambda p: torch.optim.Adamax(p, lr=0.1)])
def test_training(optimizer):
    def make(_):
        model = Model()
        return training(model, optimizer(model.parameters()))

    after(make, 0, 0, recalled=True)


def test_momentum_initialized_by_the_first_step():
    def make(_):
        model = Model()
        return training(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))

    after(make, 0, 0, recalled=True)
    step, argument, _ = make(0)
    made = torch.compile(step)
    counts = []
    for i in range(3):
        made(*argument(i))
        counts.append(sum(replay.has_run for kind in made._signatures.values() for replay in kind.entries))
    assert counts == [0, 1, 1]


def test_parameter_values_and_options_are_not_guarded():
    def make(lr):
        model = Model()
        with torch.no_grad():
            model.first.weight.mul_(lr)
        return training(model, torch.optim.Adam(model.parameters(), lr=lr))

    after(make, 0.1, 0.01, recalled=True)


def test_backward_outside_of_the_function():
    def make(_):
        model = Model()
        return model, lambda i: (data(i),), lambda: [*model.buffers()]

    after(make, 0, 0, recalled=True)

    model = Model()
    compiled = torch.compile(model)
    compiled(data(0)).sum().backward()
    other = Model()
    other(data(0)).sum().backward()
    for x, y in zip(model.parameters(), other.parameters(), strict=True):
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-4, atol=1e-6)


def test_methods_and_object_arguments():
    class Machine:
        def __init__(self, factor):
            self.factor = factor

        def work(self, x, options):
            return x * self.factor + options.shift

    def make(said):
        options = types.SimpleNamespace(shift=said[1])
        return Machine(said[0]).work, lambda i: (data(i), options), nothing

    after(make, (3.0, 2.0), (3.0, 2.0), recalled=True)
    after(make, (3.0, 2.0), (3.0, 5.0), recalled=False)
    after(make, (3.0, 2.0), (4.0, 2.0), recalled=False)


def test_resumed_training():
    def make(steps):
        model = Model()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        step, argument, seen = training(model, optimizer)
        for i in range(steps):
            step(*argument(i))
        return step, argument, seen

    after(make, 0, 2, recalled=True)


def test_optimizer_state_loaded_in_another_order():
    def make(shuffled):
        model = Model()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        step, argument, seen = training(model, optimizer)
        if shuffled:
            step(*argument(7))
            state = dict(reversed(optimizer.state.items()))
            optimizer.state.clear()
            optimizer.state.update(state)
            optimizer.zero_grad()
        return step, argument, lambda: [*seen(), *(optimizer.state[p]["exp_avg"] for p in model.parameters())]

    after(make, False, True, recalled=True)


def test_data_guards_are_checked():
    def make(sign):
        def function(x):
            return x * 2 if x.sum() > 0 else x - 1

        return function, lambda i: (abs(data(i)) * sign,), nothing

    after(make, 1, 1, recalled=True)
    after(make, 1, -1, recalled=False)


# ----- what differs -------------------------------------------------------------------------

scale, table, text = 2.0, [1.0, 2.0], "mean"


def helper(x):
    return x + 1


def test_globals_of_the_module(monkeypatch):
    def make(value):
        monkeypatch.setitem(globals(), "scale", value)
        return lambda x: x * scale, lambda i: (data(i),), nothing

    after(make, 2.0, 2.0, recalled=True)
    after(make, 2.0, 3.0, recalled=False)
    after(make, 2.0, np.float64(3.0), recalled=False)


def test_globals_of_other_modules(monkeypatch):
    def make(value):
        monkeypatch.setattr(math, "tau", value)
        return lambda x: x * math.tau + np.pi, lambda i: (data(i),), nothing

    after(make, math.tau, math.tau, recalled=True)
    after(make, math.tau, 3.0, recalled=False)


def test_called_functions(monkeypatch):
    def make(function):
        monkeypatch.setitem(globals(), "helper", function)
        return lambda x: helper(x) * 2, lambda i: (data(i),), nothing

    after(make, helper, helper, recalled=True)
    after(make, helper, lambda x: x + 2, recalled=False)
    after(make, functools.partial(torch.add, other=3.0), functools.partial(torch.add, other=4.0), recalled=False)
    after(make, torch.exp, torch.cos, recalled=False)


def of_defaults(value):
    def inner(x, factor=value):
        return x * factor
    return inner


def of_cells(value):
    def inner(x):
        return x * value
    return inner


@pytest.mark.parametrize("kind", [of_defaults, of_cells])
def test_defaults_and_closures_of_functions(kind):
    def make(value):
        inner = kind(value)
        return lambda x: inner(x) + 1, lambda i: (data(i),), nothing

    after(make, 2.0, 2.0, recalled=True)
    after(make, 2.0, 4.0, recalled=False)


@pytest.mark.parametrize(("first", "then"), [
    ([1.0, 2.0], [1.0, 3.0]), ([1.0, 2.0], [1.0, 2.0, 4.0]), ({"a": 1.0}, {"a": 2.0}), ({"a": 1.0}, {"b": 1.0}),
    ((1.0, 2.0), (1.0, 5.0)), (np.ones(3), np.full(3, 2.0)), ([[1.0], [2.0]], [[1.0], [3.0]])])
def test_containers(first, then):
    def total(x):
        if isinstance(x, dict):
            return sum(len(k) + ord(k) * v for k, v in x.items())
        return sum(map(total, x)) if isinstance(x, (list, tuple)) else float(np.sum(x))

    def make(value):
        return lambda x: x * total(value), lambda i: (data(i),), nothing

    after(make, first, first, recalled=True)
    after(make, first, then, recalled=False)


def test_attributes_of_modules():
    def make(said):
        model = Model(*said)
        return training(model, torch.optim.Adam(model.parameters(), lr=0.1))

    after(make, (1.0,), (2.0,), recalled=False)
    after(make, (1.0, torch.tanh), (1.0, torch.sigmoid), recalled=False)
    after(make, (1.0, lambda x: x * 2), (1.0, lambda x: x * 3), recalled=False)


def test_modes_of_modules():
    def make(is_training):
        model = Model()
        model.norm.train(is_training)
        return training(model, torch.optim.Adam(model.parameters(), lr=0.1))

    after(make, True, False, recalled=False)


class Tied(torch.nn.Module):
    def __init__(self, tied, shared_memory=False):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = torch.nn.Linear(4, 4, bias=False), torch.nn.Linear(4, 4, bias=False)
        if tied:
            self.b.weight = self.a.weight
        if shared_memory:
            self.b.weight.data = self.a.weight.data

    def forward(self, x):
        return self.b(torch.tanh(self.a(x)))


@pytest.mark.parametrize(("first", "then"), [((False,), (True,)), ((True,), (False,)), ((False,), (False, True)),
                                            ((False, True), (False,))])
def test_tied_weights(first, then):
    def make(said):
        model = Tied(*said)
        return training(model, torch.optim.Adam(model.parameters(), lr=0.1))

    after(make, first, then, recalled=False)
    after(make, (True,), (True,), recalled=True)


def double_gradient(p):
    p.grad.mul_(2)


@pytest.mark.parametrize("change", [
    lambda model: model.first.weight.requires_grad_(False),
    lambda model: model.register_forward_hook(lambda module, args, out: out * 2),
    lambda model: model.first.register_forward_pre_hook(lambda module, args: (args[0] * 2,)),
    lambda model: setattr(model.first, "weight", torch.nn.Parameter(model.first.weight.detach().t().contiguous().t())),
    lambda model: setattr(model.second, "bias", None),
    lambda model: setattr(model, "norm", torch.nn.LayerNorm(8)),
    lambda model: setattr(model, "forward", lambda x: model.second(model.first(x))),
    lambda model: model.first.weight.register_hook(lambda g: g * 2),
    lambda model: model.first.weight.register_post_accumulate_grad_hook(double_gradient),
])
def test_other_models(change):
    def make(changed):
        model = Model()
        if changed:
            change(model)
        step, argument, _ = training(model, torch.optim.Adam([*model.parameters()], lr=0.1))
        grads = (p for p in model.parameters() if p.grad is not None)
        return step, argument, lambda: [*model.parameters(), *(p.grad for p in grads)]

    after(make, False, True, recalled=False)


@pytest.mark.parametrize("change", [
    lambda optimizer: optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(3))], "lr": 0.5}),
    lambda optimizer: optimizer.param_groups[0].update(amsgrad=True),
    lambda optimizer: optimizer.param_groups[0].update(maximize=True),
    lambda optimizer: optimizer.param_groups[0].update(weight_decay=0.5),
    lambda optimizer: optimizer.param_groups[0]["params"].pop(),
    lambda optimizer: optimizer.register_step_pre_hook(lambda o, args, kwargs: o.param_groups[0].update(lr=0.5)),
])
def test_other_optimizers(change):
    def make(changed):
        model = Model()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        if changed:
            change(optimizer)
        return training(model, optimizer)

    after(make, False, True, recalled=False)


def test_arguments_that_are_also_globals():
    def make(apart):
        known = data(5)

        def function(x):
            return known * 2 + x

        return function, lambda i: (known.clone() if apart else known,), nothing

    after(make, False, False, recalled=False)
    after(make, False, True, recalled=False)
    after(make, True, False, recalled=False)


def test_accumulated_gradients():
    def make(_):
        weight = torch.ones(4, requires_grad=True)

        def step(x):
            (x * weight).sum().backward()
            return weight.grad * 1

        return step, lambda i: (data(i),), lambda: [weight.grad]

    after(make, 0, 0, recalled=False, calls=1)  # there is no gradient yet
    after(make, 0, 0, recalled=True)


# ----- objects that cannot be compared -------------------------------------------------------


class Lazy:
    def __init__(self):
        self.mask = None

    def __call__(self, x):
        if self.mask is None:
            self.mask = torch.ones(4) * 2
        return x * self.mask


def test_lazy_initialization():
    def make(_):
        lazy = Lazy()
        return lambda x: lazy(x) + 1, lambda i: (data(i),), lambda: [lazy.mask]

    after(make, 0, 0, recalled=False, calls=1)
    after(make, 0, 0, recalled=True)


@functools.lru_cache
def expensive(value):
    return value * 2.0


def test_caches():
    def make(value):
        return lambda x: x * expensive(value), lambda i: (data(i),), nothing

    expensive.cache_clear()
    after(make, 3, 3, recalled=True)
    after(make, 3, 5, recalled=False, calls=1)
    after(make, 3, 4, recalled=False)


class NoPickle(float):
    def __reduce_ex__(self, protocol):
        raise TypeError("not me")


@pytest.mark.parametrize("thing", [
    lambda: decimal.Decimal(3), lambda: datetime.timedelta(seconds=5), lambda: random.Random(3),
    lambda: iter([1, 2]), lambda: types.SimpleNamespace(when=datetime.date(2000, 1, 1))])
def test_opaque_objects(thing):
    def make(_):
        held = thing()
        return lambda x: x * (2 if held is not None and getattr(held, "when", 0) is not None else 1), (
            lambda i: (data(i),)), nothing

    after(make, 0, 0, recalled=False)


def test_unpicklable_objects():
    """They are found by their locations and distinguished by their contents."""
    def make(number):
        held = NoPickle(number)
        return lambda x: x * float(held), lambda i: (data(i),), nothing

    after(make, 2.0, 2.0, recalled=True)
    after(make, 2.0, 3.0, recalled=False)


@pytest.mark.parametrize("ask", [lambda: hash("abc") % 7, lambda: os.getpid() % 7, lambda: time.localtime().tm_year,
                                 lambda: len(os.listdir("."))])
def test_system_queries(ask):
    def make(_):
        return lambda x: x * ask(), lambda i: (data(i),), nothing

    after(make, 0, 0, recalled=False)


def test_warnings_are_shown_in_each_process():
    def make(_):
        def function(x):
            return F.mse_loss(x, torch.ones(1, 4))

        return function, lambda i: (data(i),), nothing

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        after(make, 0, 0, recalled=False)


@pytest.mark.parametrize("function", [
    lambda x: F.dropout(x, 0.5), lambda x: torch.bernoulli(torch.sigmoid(x)) + torch.randn(6, 4),
    lambda x: torch.normal(x, 2.0) * torch.rand_like(x), lambda x: x[torch.randperm(6)]])
def test_random_draws(function):
    def make(seed):
        torch.manual_seed(seed)
        return function, lambda i: (data(i),), lambda: [torch.rand(3)]

    after(make, 3, 4, recalled=True)


@pytest.mark.parametrize("function", [
    lambda x: x.sort(1).values + torch.linalg.pinv(x).sum(), lambda x: torch.view_as_complex(x.view(12, 2)).abs(),
    lambda x: torch.cumsum(x.double(), 0, dtype=torch.float64) + torch.kthvalue(x, 2, 1).values[:, None],
    lambda x: torch.logcumsumexp(x, 1)])
def test_fallback_operators(function):
    after(lambda _: (function, lambda i: (data(i),), nothing), 0, 0, recalled=True)


def test_random_draws_from_other_generators():
    def make(seed):
        generator = torch.Generator().manual_seed(seed)
        return lambda x: x * torch.rand(4, generator=generator), lambda i: (data(i),), nothing

    after(make, 3, 4, recalled=False)


def test_schedulers_see_the_step():
    def make(_):
        model = Model()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        step, argument, seen = training(model, optimizer)
        return step, argument, lambda: [*seen(), schedule.step()][:-1]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        after(make, 0, 0, recalled=True)


# ----- what is saved ------------------------------------------------------------------------


def test_several_programs_of_one_name():
    def make(value):
        return lambda x: x * value, lambda i: (data(i),), nothing

    for value in range(program_cache.MAX_PROGRAMS + 2):
        function, argument, _ = make(float(value))
        run(function, [argument(i) for i in range(4)])
    after(make, 5.0, 4.0, recalled=True)
    after(make, 5.0, 0.0, recalled=False)


def test_damaged_entries_are_rewritten(tmp_path):
    def make(_):
        return lambda x: x * 3, lambda i: (data(i),), nothing

    after(make, 0, 0, recalled=True)
    for path in cache_files(tmp_path):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    after(make, 0, 0, recalled=True)


@pytest.mark.parametrize("where", ["ProgramWriter", "read_program"])
def test_internal_errors_are_warnings(monkeypatch, where):
    def broken(*args):
        raise ZeroDivisionError("on purpose")

    def make(_):
        return lambda x: x * 11, lambda i: (data(i),), nothing

    function, argument, _ = make(0)
    run(function, [argument(i) for i in range(3)])
    monkeypatch.setattr(program_cache, where, broken)
    function, argument, _ = make(0)
    if where == "ProgramWriter":
        monkeypatch.setenv("FLAMBEAU_CACHE_DIR", os.environ["FLAMBEAU_CACHE_DIR"] + "/other")
    with pytest.warns(RuntimeWarning, match="internal error: ZeroDivisionError: on purpose"):
        results, recalled, _ = run(function, [argument(i) for i in range(3)])
    assert torch.equal(results[2], function(data(2)))
    assert not recalled


def test_reasons_for_not_saving():
    held = decimal.Decimal(3)
    _, _, why = run(lambda x: x * (2 if held is not None else 1), [(data(i),) for i in range(3)])
    assert why == ["a decimal.Decimal, whose contents cannot be compared"]
    said = torch.compile.explain(lambda x: x * (2 if held is not None else 1))(data(0)).next_process
    assert said == "traces a call before it replays: a decimal.Decimal, whose contents cannot be compared"
    assert torch.compile.explain(lambda x: x * 2)(data(0)).next_process == "replays the first call"
    assert torch.compile.explain(lambda x: x.tolist())(data(0)).next_process == "runs each call eagerly"


class Maker:
    def __init__(self, x):
        self.held = x * 2


class OtherMaker(Maker):
    def __init__(self, x):
        self.held = x * 3


def test_objects_created_by_the_call():
    def make(cls):
        space = {"Maker": cls}
        function = types.FunctionType((lambda x: Maker(x).held + 1).__code__, space)
        space["__builtins__"] = __builtins__
        return function, lambda i: (data(i),), nothing

    class Renamed(Maker):
        def __init__(self, x):
            self.held = x * 5

    Renamed.__name__ = Renamed.__qualname__ = "Maker"
    after(make, Maker, Maker, recalled=True)
    after(make, Maker, OtherMaker, recalled=False)
    after(make, Maker, Renamed, recalled=False)


def test_other_functions_of_flambeau(monkeypatch):
    def make(changed):
        monkeypatch.undo()
        if changed:
            monkeypatch.setattr(F, "gelu", lambda x: x * 7)
        return lambda x: F.gelu(x) + 1, lambda i: (data(i),), nothing

    path = os.environ["FLAMBEAU_CACHE_DIR"]

    def made(changed):
        found = make(changed)
        monkeypatch.setenv("FLAMBEAU_CACHE_DIR", path)
        return found

    after(made, False, False, recalled=True)
    after(made, False, True, recalled=False)


def test_a_failed_match_has_no_side_effects():
    def make(sign):
        weight = torch.nn.Parameter(torch.ones(4))
        optimizer = torch.optim.Adam([weight], lr=0.1)

        def step(x):
            loss = (x * weight).sum()
            if loss > 0:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            return loss

        return step, lambda i: (abs(data(i)) * sign,), lambda: [weight, len(optimizer.state)]

    after(make, 1, 1, recalled=True)
    after(make, 1, -1, recalled=False)


# ----- functions of one code ----------------------------------------------------------------


def closing(f):
    return lambda x: f(x)


def one_after_another(*functions):
    def all_of_them(x):
        for f in functions:
            x = f(x)
        return x

    return all_of_them


class Holder:
    def __init__(self, held):
        self.held = held

    def apply(self, x):
        return self.held(x)


def defaulted(f):
    def call(x, *, f=f):
        return f(x)

    return call


#: what makes functions of one code out of operators
FAMILIES = {
    "the operator itself": lambda f: f,
    "a cell": closing,
    "cells of cells": lambda f: closing(closing(f)),
    "a default": lambda f: lambda x, f=f: f(x),
    "a default by name": defaulted,
    "a tuple": lambda f: one_after_another(f, torch.cos),
    "a tuple in a tuple": lambda f: (lambda pairs: lambda x: pairs[0][0](x) * pairs[0][1])(((f, 2.0),)),
    "a dict": lambda f: (lambda table: lambda x: table["f"](x))({"f": f}),
    "an object": lambda f: Holder(f).apply,
    "a partial of a method": lambda f: closing(functools.partial(Holder.apply, Holder(f))),
    "a partial": lambda f: closing(functools.partial(f)),
    "a transform": lambda f: torch.vmap(f),
    "a transform of a cell": lambda f: closing(torch.vmap(closing(f))),
    "a method's name": lambda f: closing(operator.methodcaller(f.__name__)),
    "a number bound": lambda f: closing(types.MethodType(lambda k, x: x * k, len(f.__name__) + len(f.__doc__))),
    "a module": lambda f: torch.nn.Sequential({"sin": torch.nn.Tanh, "exp": torch.nn.Sigmoid}[f.__name__]()),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_functions_with_one_code_object_are_distinguished(family):
    def make(f):
        return FAMILIES[family](f), lambda i: (data(i),), nothing

    after(make, torch.sin, torch.exp, recalled=False)


@pytest.mark.parametrize("family", ["the operator itself", "a cell", "a default", "a tuple", "an object", "a module"])
def test_functions_with_one_code_object_are_found_again(family):
    def make(f):
        return FAMILIES[family](f), lambda i: (data(i),), nothing

    after(make, torch.sin, torch.sin, recalled=True)


@pytest.mark.parametrize(("first", "then"), [
    ((torch.sin, torch.cos), (torch.cos, torch.sin)), ((torch.sin,), (torch.sin, torch.sin)),
    ((torch.sin, torch.cos), (torch.sin, torch.exp))])
def test_tuples_of_functions(first, then):
    after(lambda each: (one_after_another(*each), lambda i: (data(i),), nothing), first, then, recalled=False)


@pytest.mark.parametrize(("first", "then"), [(0, 1), (1, 0)])
def test_bound_operator_arguments(first, then):
    after(lambda dim: (closing(functools.partial(torch.softmax, dim=dim)), lambda i: (data(i),), nothing),
          first, then, recalled=False)


# ----- constants and arguments --------------------------------------------------------------


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Longer(str):
    pass


class Count(int):
    pass


class Sentinel:
    pass


FIRST, SECOND = Sentinel(), Sentinel()


#: what a function does with a thing, and two things with which it is not the same
THINGS = {
    "operators": (lambda x, f: f(x), torch.sin, torch.exp),
    "functions of nn": (lambda x, f: f(x), F.relu, F.silu),
    "methods": (lambda x, f: f(x), torch.Tensor.sin, torch.Tensor.exp),
    "functions of C": (lambda x, f: x * f(2.0), math.sin, math.cos),
    "operators of Python": (lambda x, f: f(x, x), operator.add, operator.mul),
    "partials": (lambda x, f: f(x), functools.partial(torch.mul, other=2.0), functools.partial(torch.mul, other=3.0)),
    "closures": (lambda x, f: f(x), closing(torch.sin), closing(torch.exp)),
    "transforms": (lambda x, f: f(x), torch.vmap(torch.sin), torch.vmap(torch.exp)),
    "compiled functions": (lambda x, f: f(x) * 2, torch.compile(torch.sin), torch.compile(torch.exp)),
    "initializers": (lambda x, f: f(x.clone()), torch.nn.init.zeros_, torch.nn.init.ones_),
    "dtypes": (lambda x, d: x.to(d) / 3, torch.float64, torch.float16),
    "dtypes of NumPy": (lambda x, d: x * d.itemsize, np.dtype("f8"), np.dtype("f4")),
    "slices": (lambda x, s: x[s], slice(0, 2), slice(1, 3)),
    "ranges": (lambda x, s: sum(x[i] for i in s), range(2), range(1, 3)),
    "enumerations": (lambda x, s: x * (2 if s is Colour.RED else 3), Colour.RED, Colour.BLUE),
    "enumerated numbers": (lambda x, s: x * (2 if s is Level.LOW else 3), Level.LOW, Level.HIGH),
    "sentinels": (lambda x, s: x * (2 if s is FIRST else 3), FIRST, SECOND),
    "texts": (lambda x, s: x * len(s), Longer("a"), Longer("ab")),
    "numbers": (lambda x, s: x * s, Count(2), Count(3)),
    "sets": (lambda x, s: x * (2 in s), frozenset({1}), frozenset({2})),
    "classes": (lambda x, s: x * (2 if s is int else 3), int, float),
    "classes of the user": (lambda x, s: x * (2 if s is Colour else 3), Colour, Level),
    "modules": (lambda x, f: f(x), torch.nn.LeakyReLU(0.1), torch.nn.LeakyReLU(0.3)),
    "devices": (lambda x, d: x * len(d.type), torch.device("cpu"), torch.device("meta")),
    "objects": (lambda x, s: x * s.held, Holder(2.0), Holder(3.0)),
}

#: how a function gets at a thing
WAYS = {
    "given": lambda f, thing: (f, lambda i: (data(i), thing)),
    "a cell": lambda f, thing: (lambda x: f(x, thing), lambda i: (data(i),)),
    "a default": lambda f, thing: (lambda x, thing=thing: f(x, thing), lambda i: (data(i),)),
    "a list": lambda f, thing: ((lambda held: lambda x: f(x, held[0]))([thing]), lambda i: (data(i),)),
    "a tuple": lambda f, thing: ((lambda held: lambda x: f(x, held[0][0]))(((thing,),)), lambda i: (data(i),)),
    "a partial": lambda f, thing: ((lambda held: lambda x: held(x))(functools.partial(swapped(f), thing)),
                                   lambda i: (data(i),)),
    "an object": lambda f, thing: ((lambda held: lambda x: f(x, held.held))(Holder(thing)), lambda i: (data(i),)),
}


def swapped(f):
    return lambda thing, x: f(x, thing)


@pytest.mark.parametrize("things", THINGS)
@pytest.mark.parametrize("way", WAYS)
def test_unequal_constants(way, things):
    f, first, then = THINGS[things]

    def make(thing):
        return *WAYS[way](f, thing), nothing

    after(make, first, then, recalled=False)
    after(make, then, first, recalled=None)


@pytest.mark.parametrize(("way", "things"), [
    *((way, things) for way in ("given", "a cell", "a tuple") for things in (
        "operators", "functions of nn", "dtypes", "enumerations", "texts", "classes", "modules", "objects")),
    ("given", "slices"), ("given", "ranges"), ("a tuple", "slices"), ("a tuple", "ranges")])
def test_equal_constants(way, things):
    f, first, _ = THINGS[things]

    def make(thing):
        return *WAYS[way](f, thing), nothing

    after(make, first, first, recalled=True)


def test_forwarded_argument_containers():
    """What a function of the user's is given in a tuple may be what the call was given, or made meanwhile."""
    def added(*inputs):
        return inputs[0] * 2 + inputs[1]

    def make(_):
        return lambda x, y: added(*[x, y.exp()]) + added(x, y), lambda i: (data(i), data(i + 9)), nothing

    after(make, 0, 0, recalled=True)
