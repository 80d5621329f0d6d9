"""Guards on globals, closures, attributes and containers, and side effects: results equal the eager ones."""

from __future__ import annotations

import array
import collections
import contextlib
import contextvars
import cProfile
import dataclasses
import functools
import io
import itertools
import logging
import math
import operator
import os
import random
import sys
import types
import typing
import weakref

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen, nn
from tests.compiler.eager_comparison import (
    Scenario,
    compare_with_eager,
    counted_captures,
    numbers,
    parameters,
    programs,
    reasons,
    same,
)

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")

SCALE = 2.0
SETTINGS = {"scale": 2.0, "deep": {"shift": 1.0}, "list": [1.0]}
KNOWN = [torch.ones(3)]


class Options:
    scale = 2.0


def helper(x):
    return x * SCALE


def right(function, changes, make=lambda i: (numbers(3, seed=i),), each=4):
    """Call a compiled function a few times before and after each change; it is what the function is."""
    made = torch.compile(function)
    i = 0
    for change in (lambda: None, *changes):
        change()
        for _ in range(each):
            i += 1
            torch.manual_seed(i)
            mine = made(*make(i))
            torch.manual_seed(i)
            same(mine, function(*make(i)), path=f"call {i}")
    return made


@pytest.fixture(autouse=True)
def settings():
    global SCALE
    yield
    SCALE = 2.0
    SETTINGS.clear()
    SETTINGS.update({"scale": 2.0, "deep": {"shift": 1.0}, "list": [1.0]})
    KNOWN[:] = [torch.ones(3)]
    Options.scale = 2.0


def set_scale(value):
    global SCALE
    SCALE = value


def set_class(value):
    Options.scale = value


NAMES = {
    "a global": (lambda x: x * SCALE, [lambda: set_scale(3.0), lambda: set_scale(2.0)]),
    "a global of a function that is called": (lambda x: helper(x) + 1, [lambda: set_scale(3.0)]),
    "a global in a comprehension": (lambda x: sum([x * SCALE for _ in range(2)]), [lambda: set_scale(3.0)]),
    "a global in a function inside": (lambda x: (lambda: x * SCALE)(), [lambda: set_scale(3.0)]),
    "an entry of a dict": (lambda x: x * SETTINGS["scale"], [lambda: SETTINGS.update(scale=3.0)]),
    "an entry of a dict in a dict": (lambda x: x + SETTINGS["deep"]["shift"],
                                     [lambda: SETTINGS["deep"].update(shift=5.0)]),
    "an entry of a list": (lambda x: x + sum(SETTINGS["list"]), [lambda: SETTINGS["list"].append(5.0),
                                                                lambda: SETTINGS["list"].__setitem__(0, 7.0)]),
    "a tensor in a list": (lambda x: x + KNOWN[0], [lambda: KNOWN.__setitem__(0, torch.full((3,), 4.0)),
                                                   lambda: KNOWN[0].mul_(2)]),
    "an attribute of a class": (lambda x: x * Options.scale, [lambda: set_class(3.0)]),
}


@pytest.mark.parametrize("name", NAMES)
def test_globals_that_change(name):
    made = right(*NAMES[name])
    assert programs(made) >= 1


def test_a_global_that_is_defined_later():
    space = {}
    exec("def f(x):\n    try:\n        return x * late\n    except NameError:\n        return x\n", space)
    right(space["f"], [lambda: space.update(late=3.0), lambda: space.pop("late")])


def test_a_builtin_that_is_hidden():
    space = {}
    exec("def f(x):\n    return x * abs(-2)\n", space)
    right(space["f"], [lambda: space.update(abs=lambda _: 5)])


def test_a_global_of_another_module():
    module = types.ModuleType("settings_of_a_test")
    module.scale = 2.0
    sys.modules["settings_of_a_test"] = module
    try:
        right(lambda x: x * module.scale, [lambda: setattr(module, "scale", 3.0)])
    finally:
        del sys.modules["settings_of_a_test"]


def test_closure_variables():
    scale, shift = 2.0, torch.zeros(3)

    def f(x):
        return x * scale + shift

    def change():
        nonlocal scale
        scale = 3.0

    def change_again():
        nonlocal shift
        shift = torch.ones(3)

    made = right(f, [change, change_again, lambda: shift.mul_(2)])
    assert programs(made) == 3


def test_replaced_functions():
    def first(x):
        return x * 2

    def second(x):
        return x * 3

    box, now = [first], first

    def change():
        nonlocal now
        now = second

    right(lambda x: now(x), [change])
    right(lambda x: box[0](x), [lambda: box.__setitem__(0, second)])


def test_defaults_of_a_function():
    def f(x, scale=[2.0]):  # noqa: B006
        return x * scale[0]

    right(f, [lambda: f.__defaults__[0].__setitem__(0, 3.0)])

    def g(x, k=2.0):
        return x * k

    right(lambda x: g(x), [lambda: setattr(g, "__defaults__", (5.0,))])


def test_replaced_keyword_defaults():
    def f(x, *, scale=2.0):
        return x * scale

    def replace():
        f.__kwdefaults__ = {"scale": 3.0}

    right(f, [replace, lambda: f.__kwdefaults__.update(scale=4.0)])


def test_replaced_code():
    """As notebooks do when a file was edited: the functions stay, with other code."""
    def inner(x):
        return x * 2

    def f(x):
        return inner(x) + 1

    def replace(function, other):
        function.__code__ = other.__code__

    right(lambda x: f(x), [lambda: replace(inner, lambda x: x * 3), lambda: replace(inner, lambda x: x.exp())])


def test_objects_that_change_their_class():
    class Doubled:
        def scaled(self, x):
            return x * self.scale

        scale = 2.0

    class Tripled(Doubled):
        scale = 3.0

    held = Doubled()

    def become(cls):
        held.__class__ = cls

    right(lambda x: held.scaled(x), [lambda: become(Tripled), lambda: become(Doubled)])


def test_partial_functions():
    factors = {"scale": 2.0}

    def f(x, factors, k):
        return x * factors["scale"] + k

    right(functools.partial(f, factors=factors, k=1), [lambda: factors.update(scale=3.0)])


class Model:
    """Not a Module: a class of a user's own."""

    shared = 1.0

    def __init__(self):
        self.weight = torch.full((3,), 2.0)
        self.scale = 2.0
        self.options = types.SimpleNamespace(shift=1.0)
        self.calls = 0
        self.epoch = 0

    def __call__(self, x):
        return self.forward(x)

    def forward(self, x):
        return x * self.weight * self.scale + self.options.shift + self.shared

    def counting(self, x):
        self.calls += 1
        return x * self.calls

    def remembering(self, x):
        self.last = x * 2
        return self.last + 1

    @property
    def doubled(self):
        return self.scale * 2

    def by_property(self, x):
        return x * self.doubled


@pytest.mark.parametrize("how", ["method", "object", "closure"])
def test_attributes_of_objects(how):
    model = Model()
    function = {"method": model.forward, "object": model, "closure": lambda x: model.forward(x)}[how]
    changes = [lambda: setattr(model, "scale", 3.0), lambda: setattr(model.options, "shift", 5.0),
               lambda: setattr(model, "weight", torch.ones(3)), lambda: model.weight.mul_(2),
               lambda: setattr(Model, "shared", 3.0), lambda: setattr(model, "options",
                                                                      types.SimpleNamespace(shift=0.0))]
    try:
        right(function, changes, each=4)
    finally:
        Model.shared = 1.0


def test_properties():
    model = Model()
    right(model.by_property, [lambda: setattr(model, "scale", 5.0)])


def test_unread_attributes_are_not_guarded():
    model = Model()

    def change():
        model.epoch += 1

    with counted_captures() as captures:
        right(model.forward, [change] * 10, each=2)
    assert len(captures) == 2


def test_a_decorated_method():
    class Layer:
        def __init__(self, k):
            self.k = k

        @torch.compile
        def run(self, x):
            return x * self.k

    one, two = Layer(2.0), Layer(3.0)
    for i in range(5):
        x = numbers(3, seed=i)
        same(one.run(x), x * 2)
        same(two.run(x), x * 3)
    one.k = 5.0
    for i in range(4):
        x = numbers(3, seed=i)
        same(one.run(x), x * 5)
        same(two.run(x), x * 3)


@dataclasses.dataclass
class Config:
    scale: float = 2.0
    layers: int = 2


def test_a_dataclass_as_an_argument():
    config = Config()
    made = torch.compile(lambda x, config: [x * config.scale for _ in range(config.layers)])
    for change in ({}, {"scale": 3.0}, {"layers": 3}):
        for name, value in change.items():
            setattr(config, name, value)
        for i in range(4):
            x = numbers(3, seed=i)
            same(made(x, config), made.function(x, config))


# ----- what a function changes ------------------------------------------------------------

def test_appended_results():
    def build():
        kept = []

        def f(x):
            kept.append(x.sum())
            return x * 2

        return Scenario(f, lambda i: (numbers(3, seed=i),), lambda: kept)

    made = compare_with_eager(build, 14)
    assert reasons(made)  # a list of another length in each call


def test_local_lists():
    def f(x):
        kept = []
        for i in range(3):
            kept.append(x * i)
        table = {}
        table["a"] = kept[0]
        return torch.stack(kept) + table["a"]

    assert programs(right(f, [])) == 1


@pytest.mark.parametrize("name", ["counting", "remembering"])
def test_attribute_writes(name):
    def build():
        model = Model()
        return Scenario(getattr(model, name), lambda i: (numbers(3, seed=i),), lambda: dict(vars(model), options=None))

    made = compare_with_eager(build, 9)
    assert programs(made)
    assert not reasons(made)


def test_closure_variable_writes():
    def build():
        count = 0

        def f(x):
            nonlocal count
            count += 1
            return x * 2

        return Scenario(f, lambda i: (numbers(3, seed=i),), lambda: count)

    made = compare_with_eager(build)
    assert programs(made)
    assert not reasons(made)


def test_global_writes():
    def f(x):
        set_scale(SCALE + 1)
        return x * 2

    def build():
        set_scale(2.0)
        return Scenario(f, lambda i: (numbers(3, seed=i),))

    before = SCALE
    made = torch.compile(f)
    for i in range(6):
        made(numbers(3))
        assert before + i + 1 == SCALE
    assert build().function is f


def test_modules_that_mutate_themselves():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.register_buffer("last", torch.zeros(3))
            self.kept = []

        def forward(self, x):
            self.calls += 1
            self.last = x.detach() * self.calls
            if self.calls < 4:
                self.kept.append(x.sum())
            return x * 2

    def build():
        module = Counting()
        return Scenario(module, lambda i: (numbers(3, seed=i),), lambda: (module.calls, module.last, module.kept))

    made = compare_with_eager(build, 12)
    assert programs(made)
    assert not reasons(made)


def test_replaced_hidden_state():
    class Remembering(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.hidden = nn.GRUCell(3, 4), torch.zeros(2, 4)

        def forward(self, x):
            self.hidden = self.cell(x, self.hidden).detach()
            return self.hidden * 2

    def build():
        module = Remembering()
        return Scenario(module, lambda i: (numbers(2, 3, seed=i),), lambda: module.hidden)

    compare_with_eager(build, 12)


def test_hidden_state_written_in_place():
    class Remembering(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.GRUCell(3, 4)
            self.register_buffer("hidden", torch.zeros(2, 4))

        def forward(self, x):
            with torch.no_grad():
                self.hidden.copy_(self.cell(x, self.hidden))
            return self.hidden * 2

    def build():
        module = Remembering()
        return Scenario(module, lambda i: (numbers(2, 3, seed=i),), lambda: module.hidden)

    assert programs(compare_with_eager(build, 8)) == 1


def test_printing():
    def f(x):
        print("called")
        return x * 2

    def g(x):
        print(x)
        return x * 2

    def h(x):
        if x.shape[0] > 100:
            print("long")
        return x * 2

    def several(function, stream):
        old, sys.stdout = sys.stdout, stream
        try:
            for i in range(6):
                same(function(numbers(3, seed=i)), numbers(3, seed=i) * 2)
        finally:
            sys.stdout = old
        return stream.getvalue()

    for function in (f, g):
        made = torch.compile(function)
        assert several(made, io.StringIO()) == several(function, io.StringIO())
        assert reasons(made)
    quiet = torch.compile(h)
    assert several(quiet, io.StringIO()) == ""
    assert programs(quiet) == 1


def test_printing_in_a_module(capsys):
    class Loud(nn.Module):
        def forward(self, x):
            self.say("forward")
            return x + 1

        def say(self, text):
            print(text)

    made = torch.compile(nn.Sequential(nn.Linear(3, 3), Loud()))
    for i in range(6):
        made(numbers(2, 3, seed=i))
    assert capsys.readouterr().out == "forward\n" * 6


@pytest.mark.parametrize("draw", [lambda: random.random(), lambda: np.random.random(),
                                  lambda: random.gauss(0, 1)])
def test_pythons_random_module(draw):
    def f(x):
        return x * 2 if draw() < 2 else x * 3

    def seeds():
        random.seed(0)
        np.random.seed(0)
        return str(random.getstate()), str(np.random.get_state())

    made, x = torch.compile(f), numbers(3)
    seeds()
    for _ in range(6):
        made(x)
    after = draw()
    seeds()
    for _ in range(6):
        f(x)
    assert draw() == after


def test_random_branches():
    def f(x):
        return x * 2 if random.random() < 0.5 else x * 3

    made, x = torch.compile(f), torch.ones(3)
    random.seed(1)
    found = [made(x)[0].item() for _ in range(30)]
    random.seed(1)
    assert found == [f(x)[0].item() for _ in range(30)]


def test_draws_from_a_separate_generator():
    def build():
        generator = torch.Generator()
        generator.manual_seed(3)

        def f(x):
            return x + torch.randn(3, generator=generator)

        return Scenario(f, lambda i: (numbers(3, seed=i),), lambda: generator.get_state(),
                     lambda i: generator.manual_seed(i) if i == 4 else None)

    assert programs(compare_with_eager(build, 8)) == 1


def test_seeding_inside():
    def f(x):
        torch.manual_seed(7)
        return x + torch.randn(3)

    right(f, [])


def test_modes_that_stay_enabled():
    def f(x):
        torch.set_grad_enabled(not torch.is_grad_enabled())
        return x * 2

    made = torch.compile(f)
    try:
        for i in range(7):
            made(numbers(3).requires_grad_())
            assert torch.is_grad_enabled() == bool(i % 2)
    finally:
        torch.set_grad_enabled(True)

    def g(x):
        torch.set_default_dtype(torch.float64 if torch.get_default_dtype() is torch.float32 else torch.float32)
        return x * 2

    made = torch.compile(g)
    try:
        for i in range(7):
            made(numbers(3))
            assert torch.get_default_dtype() is (torch.float32 if i % 2 else torch.float64)
    finally:
        torch.set_default_dtype(torch.float32)


def test_modes_around_a_call():
    w = numbers(3, seed=1).requires_grad_()
    made = torch.compile(lambda x: (x * w, torch.is_grad_enabled(), torch.ones(2)))
    for i in range(12):
        x = numbers(3, seed=i)
        with torch.set_grad_enabled(i % 3 != 0):
            same(made(x), made.function(x))
        with torch.inference_mode():
            mine, theirs = made(x), made.function(x)
            assert mine[0].is_inference() == theirs[0].is_inference()
            same(mine[1:], theirs[1:])
    assert made(numbers(3))[0].requires_grad


def test_modes_inside():
    w = numbers(3, seed=1).requires_grad_()

    def f(x):
        with torch.no_grad():
            y = x * w
            with torch.enable_grad():
                z = x * w
        return y, z, torch.no_grad()(lambda: x * w)()

    assert programs(right(f, [])) == 1


# ----- modules ----------------------------------------------------------------------------

def test_train_and_eval():
    def build():
        model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Dropout(0.4), nn.Linear(5, 2))
        return Scenario(model, lambda i: (numbers(6, 4, seed=i),), lambda: parameters(model),
                     lambda i: model.train(i % 8 >= 4) and None)

    made = compare_with_eager(build, 24)
    assert programs(made) == 2


def test_train_mode_of_one_submodule():
    def build():
        model = nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.4), nn.Dropout(0.2))
        return Scenario(model, lambda i: (numbers(6, 4, seed=i),), lambda: parameters(model),
                     lambda i: model[1].eval() if i == 3 else None)

    compare_with_eager(build, 8)


MODULES = {
    "a number": lambda m: setattr(m[1], "p", 0.9),
    "a parameter": lambda m: setattr(m[0], "weight", nn.Parameter(torch.ones(5, 4))),
    "no bias": lambda m: setattr(m[0], "bias", None),
    "another layer": lambda m: m.__setitem__(2, nn.Tanh()),
    "one more layer": lambda m: m.append(nn.Tanh()),
    "a layer less": lambda m: m.__delitem__(2),
    "forward": lambda m: setattr(m[2], "forward", lambda x: x * 7),
    "double precision and back": lambda m: m.double().float(),
    "a hook": lambda m: m[2].register_forward_hook(lambda module, args, out: out * 2),
    "a hook before": lambda m: m[2].register_forward_pre_hook(lambda module, args: (args[0] + 1,)),
    "frozen": lambda m: m.requires_grad_(False),
    "loaded": lambda m: m.load_state_dict({k: v * 2 for k, v in m.state_dict().items()}),
    "assigned": lambda m: m.load_state_dict({k: v * 2 for k, v in m.state_dict().items()}, assign=True),
    "zeros": lambda m: m.apply(lambda each: [p.data.zero_() for p in each.parameters()]),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_change(name):
    def build():
        model = nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.3), nn.ReLU())
        return Scenario(model, lambda i: (numbers(6, 4, seed=i),), lambda: parameters(model),
                     lambda i: MODULES[name](model) and None if i == 4 else None)

    made = compare_with_eager(build, 9)
    assert programs(made) >= 1


def test_a_global_of_a_module_s_forward():
    class Scaled(nn.Module):
        def forward(self, x):
            return helper(x) * SCALE

    model = nn.Sequential(nn.Linear(3, 3), Scaled())
    right(model, [lambda: set_scale(3.0)], lambda i: (numbers(2, 3, seed=i),))


def test_lists_and_dicts_of_a_module():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.scales, self.options, self.plain = [1.0, 2.0], {"shift": 1.0}, torch.ones(3)

        def forward(self, x):
            return x * sum(self.scales) + self.options["shift"] + self.plain

    model = Mixed()
    right(model, [lambda: model.scales.append(3.0), lambda: model.options.update(shift=3.0),
                  lambda: setattr(model, "plain", torch.zeros(3)), lambda: model.scales.clear()])


def test_module_lists():
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))
            self.scales = nn.ParameterList(nn.Parameter(torch.ones(3)) for _ in range(3))
            self.named = nn.ModuleDict({"out": nn.Linear(3, 2)})

        def forward(self, x):
            for layer, scale in zip(self.layers, self.scales, strict=False):
                x = layer(x).tanh() * scale
            return self.named["out"](x)

    model = Stack()
    made = right(model, [lambda: model.layers.append(nn.Linear(3, 3)), lambda: model.scales.append(nn.Parameter(
        torch.ones(3) * 2)), lambda: model.named.update({"out": nn.Linear(3, 4)})],
        lambda i: (numbers(2, 3, seed=i),))
    assert programs(made) >= 3


# ----- hooks ------------------------------------------------------------------------------

def test_hooks_of_modules_that_change_something():
    def build():
        seen = []
        model = nn.Sequential(nn.Linear(4, 5), nn.ReLU())
        model[0].register_forward_hook(lambda module, args, out: seen.append(out.detach().sum()))
        return Scenario(model, lambda i: (numbers(6, 4, seed=i),), lambda: seen)

    compare_with_eager(build)


@pytest.mark.parametrize("kind", ["hook", "post", "leaf", "module", "pre"])
@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("effect", [True, False])
def test_hooks_of_gradients(kind, inside, effect):
    def build():
        seen = []
        model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1))

        def hook(*given):
            if effect:
                seen.append(given[-1][0].detach().clone())
            return given[-1] * 2 if kind in ("hook", "leaf") else None

        if kind == "leaf":
            model[0].weight.register_hook(hook)
        elif kind == "post":
            model[0].weight.register_post_accumulate_grad_hook(
                lambda p: None)
        elif kind == "module":
            model[1].register_full_backward_hook(hook)
        elif kind == "pre":
            model[1].register_full_backward_pre_hook(hook)

        def f(x):
            h = model[0](x)
            if kind == "hook":
                h.register_hook(hook)
            loss = model[2](model[1](h)).sum()
            if inside:
                loss.backward()
            return loss

        world = Scenario(f, lambda i: (numbers(6, 4, seed=i),), lambda: (seen, parameters(model)))
        if not inside:
            run = world.function

            def outside(x):
                return run(x)

            world.function = outside
        return world

    if inside:
        compare_with_eager(build)
        return
    torch.manual_seed(0)
    theirs = build()
    torch.manual_seed(0)
    mine = build()
    made = torch.compile(mine.function)
    for i in range(7):
        theirs.function(*theirs.arguments(i)).backward()
        made(*mine.arguments(i)).backward()
        same(mine.state(), theirs.state(), path=f"call {i}")


def test_a_hook_on_a_leaf_that_comes_later():
    def build():
        seen, w = [], numbers(3, seed=1).requires_grad_()

        def f(x):
            (x * w).sum().backward()

        return Scenario(f, lambda i: (numbers(3, seed=i),), lambda: (seen, w),
                     lambda i: w.register_hook(lambda g: seen.append(g.clone())) and None if i == 5 else None)

    compare_with_eager(build, 9)


class Held:
    pass


#: what a function may read of a tensor other than its elements
ASKED = {
    "shape": lambda w: w.shape[0], "len": len, "stride": lambda w: w.stride(-1), "dtype": lambda w: w.element_size(),
    "contiguous": lambda w: 2 + w.is_contiguous(), "requires_grad": lambda w: 2 + w.requires_grad,
    "leaf": lambda w: 2 + w.is_leaf, "class": lambda w: 2 + isinstance(w, nn.Parameter),
    "transposed": lambda w: w.t().shape[0], "flat": lambda w: torch.ones_like(w).reshape(-1).shape[0],
    "hung": lambda w: getattr(w, "scale", 1), "hung and used": lambda w: w.scale if hasattr(w, "scale") else 7}

#: what may become of a tensor that stays the same object
BECOMES = {
    "larger": lambda w: setattr(w, "data", torch.ones(5, 4)), "transposed": lambda w: setattr(w, "data", w.data.t()),
    "double": lambda w: setattr(w, "data", torch.ones(2, 3, dtype=torch.float64)),
    "wanting gradients": lambda w: w.requires_grad_(not w.requires_grad),
    "with an attribute": lambda w: setattr(w, "scale", 5),
    "a parameter": lambda w: setattr(w, "__class__", nn.Parameter)}


@pytest.mark.parametrize("becomes", BECOMES)
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("where", ["a cell", "an attribute", "a list", "a buffer", "a parameter", "an argument"])
def test_tensor_metadata(where, asked, becomes):
    w, ask, held, module = torch.ones(2, 3), ASKED[asked], Held(), nn.Module()
    if where == "a parameter":
        w = module.w = nn.Parameter(w)
    elif where == "a buffer":
        module.register_buffer("w", w)
    held.w, box = w, [w]
    functions = {"a cell": lambda x: x * ask(w), "an attribute": lambda x: x * ask(held.w),
                 "a list": lambda x: x * ask(box[0]), "an argument": lambda x, w: x * ask(w)}
    right(functions.get(where, lambda x: x * ask(module.w)), [lambda: BECOMES[becomes](w)],
          lambda i: (numbers(3, seed=i), *([w] if where == "an argument" else [])))


@pytest.mark.parametrize(("holder", "name", "function", "other"), [
    (nn.functional, "relu", lambda x: nn.functional.relu(x), lambda x: x * 7),
    (torch, "sin", lambda x: torch.sin(x), lambda x: x * 7),
    (nn, "ReLU", lambda x: nn.ReLU()(x), lambda: lambda x: x * 7),
    (nn.Tanh, "forward", lambda x, module=nn.Tanh(): module(x), lambda self, x: x * 7)])  # noqa: B008
def test_functions_of_this_package_that_are_replaced(monkeypatch, holder, name, function, other):
    right(function, [lambda: monkeypatch.setattr(holder, name, other), monkeypatch.undo])


@pytest.mark.parametrize(("ask", "change", "back"), [
    (lambda: 2 + torch.are_deterministic_algorithms_enabled(), lambda: torch.use_deterministic_algorithms(True),
     lambda: torch.use_deterministic_algorithms(False)),
    (lambda: len(torch.get_float32_matmul_precision()), lambda: torch.set_float32_matmul_precision("high"),
     lambda: torch.set_float32_matmul_precision("highest"))])
def test_switches(ask, change, back):
    try:
        right(lambda x: x * (2 + torch.are_deterministic_algorithms_enabled())
              + len(torch.get_float32_matmul_precision()) + ask(), [change, back, change])
    finally:
        back()


def test_versions_and_addresses_are_not_constants():
    w = torch.ones(3)
    made = right(lambda x: x + w._version, [lambda: w.add_(1), lambda: w.add_(1)])
    assert "_version" in reasons(made)[0]
    made = right(lambda x: x + w.data_ptr() % 64, [])
    assert "data_ptr" in reasons(made)[0]


@pytest.mark.parametrize("requires_grad", [True, False])
@pytest.mark.parametrize("how", [
    lambda x, w: x * 2 if w.grad is None else x * 3,
    lambda x, w: x * 2 if getattr(w, "grad", None) is None else x + w.grad,
    lambda x, w: x + sum(p.grad.sum() for p in [w] if p.grad is not None),
    lambda x, w: (x * 2 if w.grad is None else x * 3) + w.detach(),
    lambda x, w: x * nn.utils.get_total_norm([p.grad for p in [w] if p.grad is not None])])
def test_gradients_that_are_read(how, requires_grad):
    w = torch.ones(3, requires_grad=requires_grad)

    def have(gradient):
        w.grad = gradient

    def forget():
        del w.grad

    right(lambda x: how(x, w), [lambda: have(torch.ones(3)), lambda: have(None), lambda: have(torch.full((3,), 2.0)),
                                forget])
    right(lambda x, w: how(x, w), [lambda: have(torch.ones(3)), lambda: have(None)], lambda i: (numbers(3, seed=i), w))


def test_a_gradient_set_on_a_frozen_parameter():
    """Clipping takes it into account, though the step itself does not touch it."""
    def trained(compile):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
        model[0].weight.requires_grad_(False)
        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)

        def step(x):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()

        run = torch.compile(step) if compile else step
        for i in range(10):
            if i == 5:
                model[0].weight.grad = torch.ones(3, 3)
            run(numbers(4, 3, seed=i))
        return [p.detach() for p in model.parameters()]

    same(trained(True), trained(False))


def test_retained_gradients():
    def build():
        w = numbers(3, seed=1).requires_grad_()

        def f(x):
            y = x * w
            y.retain_grad()
            y.exp().sum().backward()
            return y.grad * 2

        return Scenario(f, lambda i: (numbers(3, seed=i),), lambda: w)

    compare_with_eager(build)


def test_saved_tensor_hooks():
    packed = []

    def pack(x):
        packed.append(x.shape)
        return x

    w = numbers(3, seed=1).requires_grad_()
    made = torch.compile(lambda x: (x * w).exp().sum())
    for i in range(5):
        made(numbers(3, seed=i))
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        loss = made(numbers(3))
        loss.backward()
    assert packed


# ----- what else can be reached -----------------------------------------------------------

def guarded_state():
    """Functions that reach something in their own way, and what changes it, by name."""
    holder = types.SimpleNamespace(k=2.0, first=2.0)
    table, late, missing = {"k": 2.0}, {}, types.SimpleNamespace()
    stack, members, memory = collections.deque([1.0]), {1, 2}, array.array("d", [2.0])
    numbers_of_numpy, objects = np.ones(3, np.float32), np.array([2.0, None], dtype=object)
    user, chain = collections.UserDict(k=2.0), collections.ChainMap(table, {"z": 1.0})
    variable: contextvars.ContextVar[float] = contextvars.ContextVar("variable", default=2.0)
    reference, ask = weakref.ref(Model), operator.attrgetter("k")
    marked = torch.ones(3)
    marked.k = 2.0
    given = functools.partial(lambda x, k: x * k, k=2.0)

    class Slotted:
        __slots__ = ("k",)

    class Meta(type):
        @property
        def k(cls):
            return cls.kept

    class Above:
        k = 2.0

        def run(self, x):
            return x * self.k

        @classmethod
        def ask(cls):
            return cls.k

    class Below(Above):
        def run(self, x):
            return super().run(x) + 1

    class Made(metaclass=Meta):
        kept = 2.0

    slotted, below = Slotted(), Below()
    slotted.k = 2.0

    def missed(x):
        try:
            return x * missing.k
        except AttributeError:
            return x

    def imported(x):
        import settings_of_a_test

        return x * settings_of_a_test.k

    def marked_function(x):
        return x * marked_function.k

    marked_function.k = 2.0
    module = sys.modules["settings_of_a_test"] = types.ModuleType("settings_of_a_test")
    module.k = 2.0
    os.environ["SCALE_OF_A_TEST"] = "2"
    return {
        "NumPy's numbers": (lambda x: x * float(numbers_of_numpy[0]), [lambda: numbers_of_numpy.__setitem__(0, 7)]),
        "NumPy's numbers, copied": (lambda x: x + torch.tensor(numbers_of_numpy),
                                    [lambda: numbers_of_numpy.__setitem__(0, 7)]),
        "NumPy's numbers, shared": (lambda x: x + torch.from_numpy(numbers_of_numpy),
                                    [lambda: numbers_of_numpy.__setitem__(0, 7)]),
        "NumPy's objects": (lambda x: x * objects[0], [lambda: objects.__setitem__(0, 7.0)]),
        "getattr": (lambda x: x * getattr(holder, f"{'fir'}st"), [lambda: setattr(holder, "first", 3.0)]),
        "getattr with a default": (lambda x: x * getattr(missing, "k", 2.0),
                                   [lambda: setattr(missing, "k", 3.0), lambda: delattr(missing, "k")]),
        "hasattr": (lambda x: x * (3 if hasattr(missing, "k") else 2),
                    [lambda: setattr(missing, "k", 3.0), lambda: delattr(missing, "k")]),
        "an attribute that is missed": (missed, [lambda: setattr(missing, "k", 3.0), lambda: delattr(missing, "k")]),
        "attrgetter": (lambda x: x * ask(holder), [lambda: setattr(holder, "k", 3.0)]),
        "get": (lambda x: x * late.get("k", 2.0), [lambda: late.update(k=3.0), late.clear]),
        "vars": (lambda x: x * vars(holder)["k"], [lambda: setattr(holder, "k", 3.0)]),
        "globals": (lambda x: x * globals()["SCALE"], [lambda: set_scale(3.0)]),
        "eval": (lambda x: x * eval("SCALE"), [lambda: set_scale(3.0)]),
        "slots": (lambda x: x * slotted.k, [lambda: setattr(slotted, "k", 3.0)]),
        "a metaclass": (lambda x: x * Made.k, [lambda: setattr(Made, "kept", 3.0)]),
        "a class method": (lambda x: x * Above.ask(), [lambda: setattr(Above, "k", 3.0)]),
        "a class above": (below.run, [lambda: setattr(Above, "k", 3.0), lambda: setattr(Below, "k", 4.0)]),
        "a method that is replaced": (lambda x: below.run(x), [
            lambda: setattr(Above, "run", lambda self, x: x * 3), lambda: setattr(below, "run", lambda x: x * 5)]),
        "a context variable": (lambda x: x * variable.get(), [lambda: variable.set(3.0)]),
        "a weak reference": (lambda x: x * reference().shared, [lambda: setattr(Model, "shared", 1.0)]),
        "a deque": (lambda x: x * sum(stack), [lambda: stack.append(3.0)]),
        "a set": (lambda x: x * len(members), [lambda: members.add(3)]),
        "an array of Python's": (lambda x: x * memory[0], [lambda: memory.__setitem__(0, 3.0)]),
        "a UserDict": (lambda x: x * user["k"], [lambda: user.update(k=3.0)]),
        "a ChainMap": (lambda x: x * chain["k"], [lambda: table.update(k=3.0)]),
        "the environment": (lambda x: x * float(os.getenv("SCALE_OF_A_TEST")),
                            [lambda: os.environ.update(SCALE_OF_A_TEST="3")]),
        "the working directory": (lambda x: x * len(os.getcwd()), [lambda: os.chdir("/")]),
        "the recursion limit": (lambda x: x * sys.getrecursionlimit(), [lambda: sys.setrecursionlimit(2345)]),
        "the switch interval": (lambda x: x * sys.getswitchinterval(), [lambda: sys.setswitchinterval(0.002)]),
        "an attribute of a tensor": (lambda x: x * marked.k, [lambda: setattr(marked, "k", 3.0)]),
        "an attribute of a function": (marked_function, [lambda: setattr(marked_function, "k", 3.0)]),
        "an import inside": (imported, [lambda: setattr(module, "k", 3.0)]),
        "a partial's keywords": (given, [lambda: given.keywords.update(k=3.0)]),
    }


@pytest.mark.parametrize("name", guarded_state())
def test_guarded_reads(name):
    folder, limit, interval = os.getcwd(), sys.getrecursionlimit(), sys.getswitchinterval()
    try:
        function, changes = guarded_state()[name]
        assert programs(right(function, changes)) >= 1
    finally:
        sys.modules.pop("settings_of_a_test", None)
        os.environ.pop("SCALE_OF_A_TEST", None)
        os.chdir(folder)
        sys.setrecursionlimit(limit)
        sys.setswitchinterval(interval)


def side_effects():
    """Functions that change something, and what tells, by name."""
    stack, counted, ready = collections.deque(), itertools.count(), np.random.default_rng(0)
    marked, weight = torch.ones(3), torch.ones(3, requires_grad=True)
    marked.n = 0
    log, stream = logging.Logger("of a test"), io.StringIO()
    log.addHandler(logging.StreamHandler(stream))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

    def generating():
        yield from range(100)

    generated = generating()

    class Counting:
        n = 0

        def run(self, x):
            Counting.n += 1
            return x * 2

    def marks(x):
        marked.n += 1
        return x * marked

    def itself(x):
        itself.n += 1
        return x * 2

    def scheduled(x):
        optimizer.zero_grad()
        (x * weight).sum().backward()
        optimizer.step()
        scheduler.step()

    itself.n = 0
    return {
        "a deque": (lambda x: (stack.append(1), x * 2)[1], lambda: len(stack)),
        "a counter of itertools": (lambda x: (next(counted), x * 2)[1], lambda: repr(counted)),
        "a generator": (lambda x: (next(generated), x * 2)[1], lambda: next(generated)),
        "a stream of NumPy's": (lambda x: (ready.random(), x * 2)[1], lambda: ready.random()),
        "a class": (Counting().run, lambda: Counting.n),
        "a tensor's attribute": (marks, lambda: marked.n),
        "the function's attribute": (itself, lambda: itself.n),
        "a log": (lambda x: (log.warning("called"), x * 2)[1], stream.getvalue),
        "a scheduler": (scheduled, lambda: (weight, optimizer.param_groups[0]["lr"], scheduler.last_epoch)),
    }


@pytest.mark.parametrize("name", side_effects())
def test_detected_side_effects(name):
    function, state = side_effects()[name]
    other, expected = side_effects()[name]
    made = torch.compile(function)
    for i in range(9):
        same(made(numbers(3, seed=i)), other(numbers(3, seed=i)))
    same(state(), expected())
    assert (programs(made) > 0) is name.endswith("attribute")  # which is a result of the program


def test_harmless_calls_are_compiled():
    depth = [0]

    @contextlib.contextmanager
    def deeper():
        depth[0] += 1
        try:
            yield
        finally:
            depth[0] -= 1

    def total(values):
        return sum(values)

    def f(x):
        with deeper():
            y = total(x * i for i in range(3)) * math.sqrt(2) * depth[0]
        return y + sum(a * b for a, b in zip([x, x], [1, 2], strict=True))

    assert programs(right(f, [])) == 1


def test_a_cache_that_is_filled_in_the_first_call():
    class Cached(nn.Module):
        def __init__(self):
            super().__init__()
            self.cache = None

        def forward(self, x):
            if self.cache is None:
                self.cache = torch.arange(3.).cos()
            return x * self.cache

    assert programs(right(Cached(), [])) == 1


def test_another_profiler_is_left_alone():
    counted, profile = [], cProfile.Profile()

    def profiling(*_):
        counted.append(1)

    sys.setprofile(profiling)
    try:
        assert programs(right(lambda x: x * 2, [])) == 1
        assert sys.getprofile() is profiling
    finally:
        sys.setprofile(None)
    profile.enable()
    try:
        assert programs(right(lambda x: x * 2, [])) == 1
    finally:
        profile.disable()
    assert counted
    assert profile.getstats()


def test_an_exception_removes_the_frame_hook():
    def f(x, k):
        if k > 1:
            raise ValueError("too many")
        return x * k

    made = torch.compile(f)
    for _ in range(3):
        with pytest.raises(ValueError, match="too many"):
            made(numbers(3), 2)
        assert sys.getprofile() is None
        same(made(numbers(3), 1), numbers(3))


def test_objects_as_arguments():
    class Scaled:
        def __init__(self, k):
            self.k = k

        @torch.compile
        def run(self, x):
            return x * self.k

    one, two = Scaled(2.0), Scaled(3.0)
    for i in range(12):
        if i == 6:
            one.k = 5.0
        same(one.run(numbers(3, seed=i)), numbers(3, seed=i) * one.k)
        same(two.run(numbers(3, seed=i)), numbers(3, seed=i) * 3)
    assert programs(Scaled.run) == 3


def test_an_optimizer_as_argument():
    def build():
        model = nn.Linear(3, 2)
        optimizer = torch.optim.Adam(model.parameters())

        def step(model, optimizer, x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        return model, optimizer, step

    torch.manual_seed(0)
    model, optimizer, step = build()
    torch.manual_seed(0)
    mine, my_optimizer, _ = build()
    made = torch.compile(step)
    for i in range(9):
        x = numbers(4, 3, seed=i)
        same(made(mine, my_optimizer, x), step(model, optimizer, x))
        same(parameters(mine), parameters(model))
    assert programs(made) == 1


def test_swapped_functions():
    made = torch.compile(lambda x, g: g(x))
    for i in range(24):
        space = {}
        exec(f"g = lambda x: x * {i // 8}.0", space)
        same(made(numbers(3), space.pop("g")), numbers(3) * (i // 8))


def test_lists_above_the_guard_limit():
    long = [float(i) for i in range(20_000)]
    made = right(lambda x: x * long[7], [lambda: long.__setitem__(7, 1.0)])
    assert programs(made) == 0
    assert "too many things" in reasons(made)[0]


def test_long_local_lists():
    def total(values):
        return sum(values)

    assert programs(right(lambda x: x * total([1.0] * 20_000), [])) == 1


def test_import_finders_are_not_traced(monkeypatch):
    class Finder:
        asked: typing.ClassVar = [*range(20)]  # changes with each import

        @classmethod
        def find_spec(cls, name, path=None, target=None):
            cls.asked.append(len(cls.asked))

    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])

    def f(x):
        try:
            import no_module_of_this_name  # noqa: F401
        except ImportError:
            return x * 2
        return x

    made = torch.compile(f)
    for i in range(4):
        same(made(numbers(3, seed=i)), numbers(3, seed=i) * 2)
    assert programs(made) == 1


def test_finalizers_are_not_traced():
    import gc

    called = []

    def callback(phase, info):
        called.append(phase)

    def f(x):
        for _ in range(2000):
            kept = []
            kept.append(kept)
        return x * 2

    made = torch.compile(f)
    gc.callbacks.append(callback)
    try:
        for i in range(4):
            same(made(numbers(3, seed=i)), numbers(3, seed=i) * 2)
    finally:
        gc.callbacks.remove(callback)
    assert gc.isenabled()
    assert programs(made) == 1


def test_compiler_internals_are_not_traced():
    """A call may compile something while it is written down: another capture would be made for that."""
    import llvmlite.ir.types

    from flambeau.compiler.tracing import frame_hook

    assert frame_hook._kind_of_code(llvmlite.ir.types.__file__, "llvmlite.ir.types") == frame_hook._INTERNAL
    assert frame_hook._kind_of_code(__file__, __name__) == frame_hook._USER


def test_autocast_is_a_guard_and_its_casts_are_compiled():
    weight = numbers(3, 3, seed=1).requires_grad_()

    def f(x, w):
        return torch.relu(x @ w).sum() + (w @ w).sum()

    made = torch.compile(f)
    for i in range(4):
        x = numbers(3, 3, seed=i + 2)
        for dtype in (None, torch.bfloat16, torch.float16):
            with torch.autocast("cpu", dtype=dtype or torch.bfloat16, enabled=dtype is not None):
                torch.mm(x, weight)  # puts the cast of the weight into the cache of the block
                got, expected = made(x, weight), f(x, weight)
            assert got.dtype is expected.dtype is (dtype or torch.float32)
            torch.testing.assert_close(got, expected, rtol=0.02, atol=0.02)
            torch.testing.assert_close(torch.autograd.grad(got, weight)[0], torch.autograd.grad(expected, weight)[0],
                                       rtol=0.05, atol=0.05)
    assert programs(made) == 3
    assert type(got.grad_fn).__name__ == "CompiledFunctionBackward"
