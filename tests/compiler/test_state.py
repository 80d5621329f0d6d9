"""State that functions assign: inputs and results of programs, guarded as arguments, written once and in order."""

from __future__ import annotations

from collections import deque, namedtuple
from typing import Any

import pytest

import flambeau as torch
from flambeau import codegen, nn
from tests.compiler.eager_comparison import (
    Scenario,
    caches,
    compare_with_eager,
    compiled_of,
    counted_captures,
    numbers,
    programs,
    reasons,
)
from tests.random_programs.stateful import failure

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")

Pair = namedtuple("Pair", ["h", "c"])
TOTAL = torch.zeros(3)
CALLS = 2


class Slots:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = torch.zeros(3)


class Holder(nn.Module):
    """A module with state of many kinds, and a method for each."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.mem, self.late, self.step, self.time = torch.zeros(3), None, 0, 0.5
        self.register_buffer("average", torch.zeros(3))
        self.weight = nn.Parameter(torch.ones(3))
        self.hidden = (torch.zeros(3), torch.zeros(3))
        self.pair = Pair(torch.zeros(3), 3)
        self.states: list[Any] = [None, torch.zeros(3)]
        self.table: dict[str, Any] = {"k": torch.zeros(3)}
        self.nested: dict[str, Any] = {"layers": [{"k": torch.zeros(3)}, {"k": torch.ones(3)}]}
        self.window: deque[Any] = deque([torch.zeros(3)] * 2, maxlen=2)
        self.slots, self.flag = Slots(), False

    def attribute(self, x):
        self.mem = 0.9 * self.mem + x
        return self.mem * 2

    def returned(self, x):
        self.mem = 0.9 * self.mem + x
        return self.mem, self.mem + 1

    def none_at_first(self, x):
        self.late = x if self.late is None else self.late * 0.5 + x
        return self.late + 1

    def counter(self, x):
        self.step += 1
        return x / self.step

    def unused_counter(self, x):
        self.step += 1
        return x.exp()

    def clock(self, x):
        self.time += 0.25
        return x * self.time

    def buffer(self, x):
        self.average = 0.9 * self.average + 0.1 * x
        return x - self.average

    def parameter(self, x):
        self.weight = nn.Parameter(self.weight.detach() * 0.5 + x)
        return self.weight.detach() * 2

    def tuple_of_states(self, x):
        h, c = self.hidden
        self.hidden = (torch.tanh(h + x), c * 0.5 + h)
        return self.hidden[0] + self.hidden[1]

    def named_tuple(self, x):
        self.pair = Pair(self.pair.h + x, self.pair.c + 1)
        return self.pair.h * 2

    def list_of_states(self, x):
        for i, state in enumerate(self.states):
            self.states[i] = x if state is None else state * 0.5 + x
        return self.states[0] + self.states[1]

    def new_list(self, x):
        self.states = [x + 1, x if self.states[0] is None else self.states[0] * 0.5]
        return self.states[1] * 2

    def dictionary(self, x):
        self.table["k"] = self.table["k"] * 0.5 + x
        self.table["last"] = x
        return self.table["k"] + 1

    def containers_in_containers(self, x):
        for layer in self.nested["layers"]:
            layer["k"] = layer["k"] * 0.5 + x
            x = x + layer["k"]
        return x

    def limited_deque(self, x):
        self.window.append(x)
        return self.window[0] + self.window[1]

    def slot(self, x):
        self.slots.value = self.slots.value * 0.5 + x
        return self.slots.value + 1

    def flipped(self, x):
        self.flag = not self.flag
        return x * 2 if self.flag else x + 1

    def global_variable(self, x):
        global TOTAL, CALLS
        TOTAL, CALLS = TOTAL * 0.5 + x, CALLS + 1
        return TOTAL * 2

    def deleted(self, x):
        if self.step % 2:
            del self.extra
        else:
            self.extra = x * 2
        self.step += 1
        return x + 1

    def swapped(self, x):
        self.hidden = (self.hidden[1], self.hidden[0] + x)
        self.mem, self.late = self.hidden[0], self.mem
        return x * 2

    def state(self) -> Any:
        own = {name: value for name, value in vars(self).items() if name[0] != "_" and name != "slots"}
        own["window"], own["pair"] = [*self.window], tuple(self.pair)
        own |= self._buffers | self._parameters
        return {name: own[name] for name in sorted(own)}, self.slots.value, TOTAL, CALLS


METHODS = [name for name, each in vars(Holder).items() if callable(each) and name not in (
    "__init__", "state", "global_variable")]  # worlds share globals
#: methods that are another program in each second call, or remove what others look up
SEVERAL = {"flipped": 2, "deleted": 0}


@pytest.mark.parametrize("name", METHODS)
def test_one_program(name):
    def build():
        holder = Holder()
        return Scenario(getattr(holder, name), lambda i: (numbers(3, seed=i),), holder.state)

    made = compare_with_eager(build, 14)
    assert not reasons(made)
    if name not in SEVERAL:
        assert programs(made) in (1, 2)  # counters have one for their first numbers
        with counted_captures() as captures:
            for i in range(4):
                made(numbers(3, seed=i))
        assert not captures


def test_global_variables():
    global TOTAL, CALLS
    outcomes = []
    for compiled in (False, True):
        TOTAL, CALLS = torch.zeros(3), 2
        holder = Holder()
        step = torch.compile(holder.global_variable) if compiled else holder.global_variable
        outcomes.append([(step(numbers(3, seed=i)).tolist(), TOTAL.tolist(), CALLS) for i in range(12)])
    assert _close(*outcomes)
    assert programs(step) >= 1
    assert not reasons(step)


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_close, a, b))
    return abs(a - b) < 1e-5


def test_gradients_through_calls():
    """State that is not detached has the graph of earlier calls."""
    def build():
        holder = Holder()

        def forward(x):
            holder.mem = torch.tanh(holder.linear(x) + holder.mem)
            return holder.mem.sum()

        losses: list[Any] = []

        def between(i):
            if i % 4 == 3:
                sum(losses).backward()
                losses.clear()
                holder.mem = holder.mem.detach()

        scenario = Scenario(forward, lambda i: (numbers(3, seed=i),), lambda: [*holder.parameters()], between)
        scenario.losses = losses
        return scenario

    worlds = build(), build()
    torch.manual_seed(0)
    for p, q in zip(worlds[0].state(), worlds[1].state(), strict=True):
        q.detach().copy_(p.detach())
    made = torch.compile(worlds[1].function)
    for i in range(24):
        for world, f in zip(worlds, (worlds[0].function, made), strict=True):
            world.losses.append(f(*world.arguments(i)))
            world.between(i)
        for p, q in zip(worlds[0].state(), worlds[1].state(), strict=True):
            assert (p.grad is None) is (q.grad is None)
            assert p.grad is None or torch.allclose(p.grad, q.grad, atol=1e-5)
    assert not reasons(made)
    assert programs(made) == 2  # with state that requires grad, and without


def test_detached_state_has_no_edge_to_freed_graphs():
    holder = Holder()

    @torch.compile
    def forward(x):
        holder.mem = holder.mem.detach() * 0.5 + holder.linear(x)
        return (x + holder.mem).sum()

    for i in range(10):
        forward(numbers(3, seed=i)).backward()
    assert programs(forward) >= 1


def test_modules_that_share_state():
    class Cell(nn.Module):
        def __init__(self, shared):
            super().__init__()
            self.shared = shared

        def forward(self, x):
            self.shared.mem = self.shared.mem * 0.5 + x
            return self.shared.mem + 1

    def build():
        shared = Holder()
        cells = Cell(shared), Cell(shared)
        return Scenario(lambda x: cells[1](cells[0](x)), lambda i: (numbers(3, seed=i),), lambda: shared.mem)

    made = compare_with_eager(build, 10)
    assert programs(made) == 1
    assert not reasons(made)


def test_programs_see_what_others_assigned():
    """Two compiled functions: one assigns what the other one guards on."""
    holder = Holder()
    write, read = torch.compile(holder.counter), torch.compile(lambda x: x * holder.step)
    for i in range(20):
        write(numbers(3, seed=i))
        assert torch.equal(read(torch.ones(3)), torch.full((3,), float(holder.step)))
    assert holder.step == 20


def test_state_that_is_reset():
    """Before each call to the same, so that all traced calls are alike; or to another container."""
    def build():
        holder = Holder()

        def forward(x):
            return holder.counter(x) + holder.list_of_states(x)

        def between(i):
            if i < 6:
                holder.step = 4
            if i % 3 == 0:
                holder.states = [None, torch.zeros(3)]
            if i == 9:
                holder.step = 4

        return Scenario(forward, lambda i: (numbers(3, seed=i),), holder.state, between)

    made = compare_with_eager(build, 18)
    assert programs(made)


def test_an_error_leaves_what_eager_leaves():
    def build():
        holder = Holder()

        def forward(x, weight):
            holder.step += 1
            holder.mem = holder.mem + x
            if holder.step > 9:
                raise ValueError(f"step {holder.step}")
            y = holder.mem @ weight
            holder.late = y
            return y * 2

        def arguments(i):
            return numbers(3, seed=i), numbers(2 if i == 5 else 3, 3)

        return Scenario(forward, arguments, holder.state)

    compare_with_eager(build, 13)


def test_a_counter_that_decides():
    def build():
        holder = Holder()

        def forward(x):
            holder.step += 1
            if holder.step % 4 == 0:
                holder.mem = holder.mem + x
            return x * 2

        return Scenario(forward, lambda i: (numbers(3, seed=i),), holder.state)

    compare_with_eager(build, 24)


def test_modes_and_sizes_between_calls():
    def build():
        holder = Holder()
        holder.keys = torch.zeros(1, 3)

        def forward(x):
            holder.keys = torch.cat([holder.keys, x.detach()[None]])
            if holder.training:
                holder.mem = holder.mem.detach() * 0.5 + holder.linear(x)
            return (holder.keys @ x).softmax(0) @ holder.keys + holder.mem

        def between(i):
            holder.train(i % 5 != 4)
            if i % 7 == 6:
                holder.keys = torch.zeros(1, 3)

        return Scenario(forward, lambda i: (numbers(3, seed=i),), lambda: (holder.keys, holder.mem), between)

    made = compare_with_eager(build, 25)
    assert not reasons(made)


def test_a_list_that_always_grows_is_given_up():
    def build():
        kept: list[Any] = []

        def forward(x):
            kept.append(x * 2)
            return x.exp().sum() + kept[-1].sum()

        return Scenario(forward, lambda i: (numbers(3, seed=i),), lambda: kept)

    made = compare_with_eager(build, 20)
    assert reasons(made)
    assert len(caches(made)) < 16


def test_containers_that_others_refer_to():
    """A list that a closure holds as well is guarded; replaced, it is another one."""
    def build():
        holder = Holder()
        alias = holder.states

        def forward(x):
            holder.states[1] = alias[1] * 0.5 + x
            return alias[1] + 1

        def between(i):
            if i == 8:
                holder.states = [None, torch.ones(3)]

        return Scenario(forward, lambda i: (numbers(3, seed=i),), lambda: (holder.states, alias), between)

    compare_with_eager(build, 16)


def test_explain_names_state_and_leaves_one_call():
    holder = Holder()
    found = torch.compile.explain(holder.counter)(torch.ones(3))
    assert holder.step == 1
    assert found.graph_count == 1
    assert "step" in str(found)
    assert torch.compile.explain(holder.attribute)(torch.ones(3)).graph_count == 1
    assert torch.equal(holder.mem, torch.ones(3))


def test_one_graph():
    holder = Holder()
    made = torch.compile(holder.attribute, fullgraph=True)
    for _ in range(6):
        made(torch.ones(3))
    assert programs(made) == 1
    made = torch.compile(lambda x: (holder.attribute(x), print("effect"))[0], fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="print"):
        made(torch.ones(3))


def test_programs_for_many_numbers_keep_their_guards():
    """A guard that fails in a program for all numbers makes another one; it does not serve the other numbers."""
    holder = Holder()
    made = torch.compile(lambda x, n: x * n if holder.training else x + n)
    for i in range(24):
        holder.train(i // 8 != 1)
        n = 2.5 + i % 8
        assert torch.allclose(made(torch.ones(3), n), torch.ones(3) * n if holder.training else torch.ones(3) + n)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_programs(first):
    for seed in range(first, first + 10):
        assert failure(seed) is None


def test_reset():
    holder = Holder()
    made = torch.compile(holder.attribute)
    for _ in range(6):
        made(torch.ones(3))
    compiled_of(made).reset()
    assert programs(made) == 0
    made(torch.ones(3))
