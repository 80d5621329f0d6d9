"""What a function sees without being handed it, and what it changes besides tensors: results stay right."""

from __future__ import annotations

import dataclasses
import functools
import io
import random
import sys
import types

import numpy as np
import pytest

import flambeau as torch
from flambeau import jit, nn
from tests.compiler.beside import World, beside, counted_captures, numbers, parameters, programs, reasons, same

pytestmark = pytest.mark.skipif(not jit.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")

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
def test_names(name):
    made = right(*NAMES[name])
    assert programs(made) >= 1


def test_a_name_that_appears():
    space = {}
    exec("def f(x):\n    try:\n        return x * late\n    except NameError:\n        return x\n", space)
    right(space["f"], [lambda: space.update(late=3.0), lambda: space.pop("late")])


def test_a_builtin_that_is_hidden():
    space = {}
    exec("def f(x):\n    return x * abs(-2)\n", space)
    right(space["f"], [lambda: space.update(abs=lambda _: 5)])


def test_a_name_of_a_module():
    module = types.ModuleType("settings_of_a_test")
    module.scale = 2.0
    sys.modules["settings_of_a_test"] = module
    try:
        right(lambda x: x * module.scale, [lambda: setattr(module, "scale", 3.0)])
    finally:
        del sys.modules["settings_of_a_test"]


def test_variables_around_a_function():
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


def test_functions_that_are_replaced():
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


def test_attributes_that_a_function_does_not_name_may_change():
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

        return World(f, lambda i: (numbers(3, seed=i),), lambda: kept)

    made = beside(build)
    assert reasons(made)


def test_a_list_inside_a_function_is_its_own():
    def f(x):
        kept = []
        for i in range(3):
            kept.append(x * i)
        table = {}
        table["a"] = kept[0]
        return torch.stack(kept) + table["a"]

    assert programs(right(f, [])) == 1


@pytest.mark.parametrize("name", ["counting", "remembering"])
def test_attributes_that_are_set(name):
    def build():
        model = Model()
        return World(getattr(model, name), lambda i: (numbers(3, seed=i),), lambda: dict(vars(model), options=None))

    made = beside(build, 9)
    assert reasons(made)


def test_a_variable_around_that_is_set():
    def build():
        count = 0

        def f(x):
            nonlocal count
            count += 1
            return x * 2

        return World(f, lambda i: (numbers(3, seed=i),), lambda: count)

    assert reasons(beside(build))


def test_a_global_that_is_set():
    def f(x):
        set_scale(SCALE + 1)
        return x * 2

    def build():
        set_scale(2.0)
        return World(f, lambda i: (numbers(3, seed=i),))

    before = SCALE
    made = torch.compile(f)
    for i in range(6):
        made(numbers(3))
        assert before + i + 1 == SCALE
    assert build().function is f


def test_modules_that_change_themselves():
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
        return World(module, lambda i: (numbers(3, seed=i),), lambda: (module.calls, module.last, module.kept))

    made = beside(build, 9)
    assert reasons(made)


def test_a_hidden_state_that_is_replaced():
    class Remembering(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.hidden = nn.GRUCell(3, 4), torch.zeros(2, 4)

        def forward(self, x):
            self.hidden = self.cell(x, self.hidden).detach()
            return self.hidden * 2

    def build():
        module = Remembering()
        return World(module, lambda i: (numbers(2, 3, seed=i),), lambda: module.hidden)

    beside(build, 12)


def test_a_hidden_state_that_is_written_to():
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
        return World(module, lambda i: (numbers(2, 3, seed=i),), lambda: module.hidden)

    assert programs(beside(build, 8)) == 1


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
def test_python_s_random_numbers(draw):
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


def test_ways_by_chance():
    def f(x):
        return x * 2 if random.random() < 0.5 else x * 3

    made, x = torch.compile(f), torch.ones(3)
    random.seed(1)
    found = [made(x)[0].item() for _ in range(30)]
    random.seed(1)
    assert found == [f(x)[0].item() for _ in range(30)]


def test_numbers_drawn_from_a_generator_of_ones_own():
    def build():
        generator = torch.Generator()
        generator.manual_seed(3)

        def f(x):
            return x + torch.randn(3, generator=generator)

        return World(f, lambda i: (numbers(3, seed=i),), lambda: generator.get_state(),
                     lambda i: generator.manual_seed(i) if i == 4 else None)

    assert programs(beside(build, 8)) == 1


def test_the_stream_is_set_inside():
    def f(x):
        torch.manual_seed(7)
        return x + torch.randn(3)

    right(f, [])


def test_modes_that_stay_switched():
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
        return World(model, lambda i: (numbers(6, 4, seed=i),), lambda: parameters(model),
                     lambda i: model.train(i % 8 >= 4) and None)

    made = beside(build, 24)
    assert programs(made) == 2


def test_one_module_of_several_is_switched():
    def build():
        model = nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.4), nn.Dropout(0.2))
        return World(model, lambda i: (numbers(6, 4, seed=i),), lambda: parameters(model),
                     lambda i: model[1].eval() if i == 3 else None)

    beside(build, 8)


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
        return World(model, lambda i: (numbers(6, 4, seed=i),), lambda: parameters(model),
                     lambda i: MODULES[name](model) and None if i == 4 else None)

    made = beside(build, 9)
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
        return World(model, lambda i: (numbers(6, 4, seed=i),), lambda: seen)

    beside(build)


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

        world = World(f, lambda i: (numbers(6, 4, seed=i),), lambda: (seen, parameters(model)))
        if not inside:
            run = world.function

            def outside(x):
                return run(x)

            world.function = outside
        return world

    if inside:
        beside(build)
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

        return World(f, lambda i: (numbers(3, seed=i),), lambda: (seen, w),
                     lambda i: w.register_hook(lambda g: seen.append(g.clone())) and None if i == 5 else None)

    beside(build, 9)


def test_retained_gradients():
    def build():
        w = numbers(3, seed=1).requires_grad_()

        def f(x):
            y = x * w
            y.retain_grad()
            y.exp().sum().backward()
            return y.grad * 2

        return World(f, lambda i: (numbers(3, seed=i),), lambda: w)

    beside(build)


def test_saved_tensors_are_packed():
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
