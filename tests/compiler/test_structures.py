"""Objects and containers that are made anew in each call: their attributes and entries are inputs and results."""

from __future__ import annotations

import abc
import dataclasses
import enum
import threading
import types
import typing
from typing import Any

import pytest

import flambeau as torch
from flambeau import codegen, nn
from flambeau.compiler.state.structure import is_record_class
from tests.compiler.eager_comparison import numbers, programs, reasons, same

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")

T = typing.TypeVar("T")
WEIGHT = numbers(3, 3, seed=9)


@dataclasses.dataclass
class Batch:
    x: Any
    n: int = 2
    late: Any = None


@dataclasses.dataclass(frozen=True)
class State:
    h: Any
    step: int = 0


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


class Finalized(Batch):
    def __del__(self):
        FINALIZED.append(1)


class Watched(Batch):
    def __setattr__(self, name, value):
        SEEN[name] = SEEN.get(name, 0) + 1
        super().__setattr__(name, value)


FINALIZED: list[int] = []
SEEN: dict[str, int] = {}
REGISTRY: list[Any] = []


def plain(value: Any, seen: tuple[int, ...] = ()) -> Any:
    """A value with objects as dictionaries of their attributes."""
    if id(value) in seen:
        return "again"
    seen = (*seen, id(value))
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *[plain(x, seen) for x in value]]
    if isinstance(value, dict):
        return {key: plain(x, seen) for key, x in value.items()}
    if isinstance(value, Slotted):
        return {"x": value.x}
    if isinstance(value, set):
        return sorted(value)
    if hasattr(value, "__dict__") and not isinstance(value, (torch.Tensor, nn.Module)):
        return {"": type(value).__name__, **{key: plain(x, seen) for key, x in vars(value).items()}}
    return value.clone() if isinstance(value, torch.Tensor) else value


def writes(b):
    b.late = b.x @ WEIGHT
    b.n += 1
    return b.late * b.n


def nested(b):
    b.late = Batch(b.x + 1, b.n, {"deep": [b.x * 2]})
    b.late.late["deep"].append(b)
    return Batch(b.late.x, late=b)


def removes(b):
    del b.late
    b.other = b.x.exp()
    return b.other.sum()


def grows(items, x):
    items.append(x * 2)
    items[0] = items[0] + len(items)
    return items


def table(d):
    d["sum"] = d.pop("a") + d["b"]
    d.setdefault("c", []).append(d["sum"] * 2)
    return d


def twice(x):
    inner = [x + 1]
    return {"a": inner, "b": inner, "c": State(x * 2, 3)}


def members(s, x):
    s.add(x.shape[0])
    return x * len(s), s


def late_error(b):
    b.n += 1
    if b.n == 8:
        raise ValueError("eight")
    b.late = b.x * b.n
    return b


CASES: dict[str, tuple[Any, Any, int]] = {  # function, arguments of the i-th call, least number of programs
    "attributes that are written": (writes, lambda i: (Batch(numbers(3, 3, seed=i)),), 1),
    "numbers that vary": (writes, lambda i: (Batch(numbers(3, 3, seed=i), i),), 1),
    "sizes that vary": (writes, lambda i: (Batch(numbers(3 + i % 3, 3, seed=i)),), 1),
    "objects in objects": (nested, lambda i: (Batch(numbers(3, seed=i)),), 1),
    "attributes that are removed": (removes, lambda i: (Batch(numbers(3, seed=i)),), 1),
    "a frozen object": (lambda s: State(s.h * 2 + s.step, s.step + 1),
                        lambda i: (State(numbers(3, seed=i), i // 6),), 1),
    "two objects that share one": (lambda a, b: (a.late.x + b.late.x, a.late is b.late), lambda i: (
        lambda inner: (Batch(inner.x, late=inner), Batch(inner.x, late=inner if i % 2 else Batch(inner.x * 3))))(
            Batch(numbers(3, seed=i))), 2),
    "the same object twice": (lambda a, b: (setattr(a, "x", a.x + 1), b.x * 2)[1], lambda i: (
        Batch(numbers(3, seed=i)),) * 2, 1),
    "a list that grows": (grows, lambda i: ([numbers(3, seed=i)], numbers(3, seed=i + 1)), 1),
    "a dictionary that is returned": (table, lambda i: ({"a": numbers(3, seed=i), "b": numbers(3, seed=i + 1)},), 1),
    "results that share a list": (twice, lambda i: (numbers(3, seed=i),), 1),
    "a set": (members, lambda i: ({1, 2}, numbers(3, seed=i)), 1),
    "keywords": (lambda b, *, k=None: b.x * 2 if k is None else b.x * k.n, lambda i: (Batch(numbers(3, seed=i)),), 1),
    "errors": (late_error, lambda i: (Batch(numbers(3, seed=i), 1 + i),), 0),
    "a registry": (lambda b: (REGISTRY.append(b), b.x * 2)[1], lambda i: (Batch(numbers(3, seed=i)),), 0),
    "slots": (lambda b: b.x * 2, lambda i: (Slotted(numbers(3, seed=i)),), 0),
    "finalizers": (lambda b: Finalized(b.x * 2), lambda i: (Batch(numbers(3, seed=i)),), 0),
    "a method that counts": (writes, lambda i: (Watched(numbers(3, 3, seed=i)),), 0),
    "an object that holds itself": (lambda b: b.late.x * 2, lambda i: (lambda b: (
        setattr(b, "late", b), (b,))[1])(Batch(numbers(3, seed=i))), 1),
    "an object of a namespace class": (lambda b: types.SimpleNamespace(y=b.x * 2), lambda i: (
        types.SimpleNamespace(x=numbers(3, seed=i)),), 0),
}


@pytest.mark.parametrize("name", CASES)
def test_results_and_arguments(name):
    function, arguments, count = CASES[name]
    made = torch.compile(function)
    seen = []
    for target in (made, function):
        REGISTRY.clear()
        SEEN.clear()
        observed: list[Any] = []
        for i in range(14):
            args = arguments(i)
            try:
                result = target(*args)
            except ValueError as error:
                result = str(error)
            kept = [result is x for x in args]
            observed.append(plain([result, args, kept, len(REGISTRY) and REGISTRY[-1] is args[0], dict(SEEN)]))
        seen.append(observed)
    same(*seen)
    assert programs(made) >= count
    assert not count or not reasons(made)


def test_gradients():
    def f(b):
        b.late = (b.x * WEIGHT).tanh()
        return State(b.late.sum(), b.n)

    made = torch.compile(f)
    for i in range(8):
        results = []
        for target in (made, f):
            x = numbers(3, 3, seed=i).requires_grad_()
            b = Batch(x * 1 if i % 4 == 3 else x)
            target(b).h.backward(retain_graph=True)
            b.late.mean().backward()
            results.append((x.grad, b.late))
        same(*results)
    assert programs(made) == 2


def test_an_object_that_others_reach():
    shared = Batch(numbers(3), 1)
    holder = {"b": shared}

    def f(b):
        b.n = b.n + 1
        return b.x * holder["b"].n

    made = torch.compile(f)
    for i in range(16):
        b = shared if i % 4 == 3 else Batch(numbers(3, seed=i), i)
        n = b.n
        expected = b.x * ((n + 1) if b is shared else shared.n)
        same(made(b), expected)
        assert b.n == n + 1


def test_a_class_that_changes():
    class Scaled(Batch):
        scale = 2.0

        def scaled(self):
            return self.x * self.scale

    made = torch.compile(lambda b: b.scaled())
    for i in range(12):
        if i == 6:
            Scaled.scale = 3.0
        if i == 9:
            Scaled.scaled = lambda self: self.x - 1
        b = Scaled(numbers(3, seed=i))
        same(made(b), b.scaled())
    assert programs(made) == 3


def test_objects_kept_as_state():
    class Holder:
        def __init__(self):
            self.state = State(torch.zeros(3))
            self.seen: set[int] = set()
            self.items = [torch.zeros(3), torch.ones(3)]

        def step(self, x):
            old = self.state
            self.state = dataclasses.replace(old, h=old.h * 0.5 + x, step=old.step + 1)
            return self.state.h * self.state.step

        def count(self, x):
            self.seen = self.seen | {x.shape[0]}
            return x * len(self.seen)

        def listed(self, x):
            for i, each in enumerate(self.items):
                self.items[i] = each + x
            return self.items

    for name in ("step", "count", "listed"):
        eager, other = Holder(), Holder()
        made = torch.compile(getattr(other, name))
        states = []
        for i in range(10):
            x = numbers(3, seed=i)
            found, expected = made(x), getattr(eager, name)(x)
            same(found, expected)
            same(plain(other), plain(eager))
            states.append(other.state)
            assert found is not expected
            assert (found is other.items) is (expected is eager.items)
        assert len({id(each) for each in states}) == (10 if name == "step" else 1)
        assert programs(made) >= 1
        assert not reasons(made)


def test_one_graph():
    made = torch.compile(lambda b: Batch(b.x * 2, late=b), fullgraph=True)
    for i in range(6):
        b = Batch(numbers(3, seed=i))
        result = made(b)
        same(result.x, b.x * 2)
        assert result.late is b
    assert programs(made) == 1


def test_which_objects_are_their_attributes():
    class Layer(nn.Module):
        pass

    class Above(abc.ABC):
        @abc.abstractmethod
        def run(self):
            pass

    class Below(Above, typing.Generic[T]):
        def run(self):
            return 1

    class Kind(enum.Enum):
        A = 1

    assert all(map(is_record_class, (Batch, State, Watched, Below)))
    others = (Layer, nn.Linear, Slotted, Finalized, Kind, ValueError, dict, torch.Tensor, torch.optim.SGD,
              threading.local)
    assert not any(map(is_record_class, others))
