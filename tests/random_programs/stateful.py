"""Random modules that assign state in `forward`, compiled: attributes, counters, tuples, lists, buffers, globals.

    python -m tests.random_programs.stateful --programs 200
    python -m tests.random_programs.stateful --replay 1234

A program is a module whose `forward` is made of random statements, and a session of calls. Between calls the user
resets a piece of state, detaches it, switches the mode or calls backward.
After each call the result, the state, gradients and
errors are held against the same session run eagerly.
"""

from __future__ import annotations

import argparse
import sys
import time
import types
import warnings
from collections import deque
from random import Random
from typing import Any

import numpy as np

import flambeau as torch
from flambeau import nn
from tests.compiler.eager_comparison import compiled_of, numbers

CALLS = 18
#: by seed, whether a program was divided
_divided: dict[int, bool] = {}
#: what `reset` does, and statements of `forward`
STATEMENTS: list[tuple[str, str]] = [
    ("self.mem = torch.zeros(4)", "self.mem = 0.9 * self.mem + x\nx = x + self.mem"),
    ("self.spiking = torch.zeros(4)", ("self.spiking = 0.9 * self.spiking + x - (self.spiking > 1).float()\n"
                                      "x = x + (self.spiking > 1).float()")),
    ("self.step = 0", "self.step += 1\nx = x * (1 + 0.01 * self.step)"),
    ("self.count = 5", "self.count += 2"),
    ("self.time = 0.5", "self.time = self.time + 0.25\nx = x + self.time"),
    ("self.flag = False", "self.flag = not self.flag\nx = x * 2 if self.flag else x"),
    ("self.hidden = None", ("if self.hidden is None:\n    self.hidden = (x, x * 0)\na, b = self.hidden\n"
                           "self.hidden = (torch.tanh(self.linear(x) + a), b * 0.5 + a)\nx = x + self.hidden[1]")),
    ("self.detached = torch.zeros(4)", ("self.detached = self.detached.detach() * 0.5 + self.linear(x)\n"
                                       "x = x + self.detached")),
    ("self.carried = torch.zeros(4)", "self.carried = self.carried * 0.5 + self.linear(x)\nx = x + self.carried"),
    ("self.states = [torch.zeros(4) for _ in range(2)]",
     "for i in range(2):\n    self.states[i] = torch.tanh(self.states[i] + x)\n    x = x + self.states[i]"),
    ("self.pairs = [[None, 0] for _ in range(2)]",
     ("for i in range(2):\n    old = self.pairs[i][0]\n    self.pairs[i][0] = x if old is None else old * 0.5 + x\n"
     "    self.pairs[i][1] += 1\n    x = x + self.pairs[i][0]")),
    ("self.average = torch.zeros(4)", "self.average = 0.9 * self.average + 0.1 * x.detach()\nx = x - self.average"),
    ("self.sum = torch.zeros(4)", "with torch.no_grad():\n    self.sum.add_(x)\nx = x + self.sum"),
    ("self.recent = []", ("self.recent.append(x.detach())\nif len(self.recent) > 2:\n    self.recent.pop(0)\n"
                         "x = x + sum(self.recent)")),
    ("self.grown = []", "self.grown.append(x.detach())\nx = x + 0.1 * sum(self.grown)"),
    ("self.keys = None", ("new = x.detach()[None]\n"
                         "self.keys = new if self.keys is None else torch.cat([self.keys, new])\n"
                         "x = x + torch.softmax(self.keys @ x, 0) @ self.keys")),
    ("self.table = {}", ("self.table['h'] = x if 'h' not in self.table else self.table['h'] * 0.5 + x\n"
                        "x = x + self.table['h']")),
    ("self.window = deque(maxlen=3)", "self.window.append(x.detach())\nx = x + sum(self.window) / len(self.window)"),
    ("self.a = self.b = torch.zeros(4)", "self.a = self.a + x.detach()\nself.b, old = self.a, self.b\nx = x + old"),
    ("self.seen = None", ("if self.training:\n    self.seen = x.detach() * 2\nelif self.seen is not None:\n"
                         "    x = x + self.seen")),
    ("self.box.v = torch.zeros(4)", "self.box.v = self.box.v * 0.5 + x.detach()\nx = x + self.box.v"),
    ("self.box.n = 2", "self.box.n += 1\nif self.box.n % 4 == 0:\n    self.box.n += 1\nx = x * 1.01"),
    ("global LEVEL\nLEVEL = torch.zeros(4)", "global LEVEL\nLEVEL = LEVEL * 0.5 + x.detach()\nx = x + LEVEL"),
    ("global NUMBER\nNUMBER = 3", "global NUMBER\nNUMBER += 1"),
    ("self.leaf = torch.zeros(4)", "self.leaf = x.detach().clone()\nx = x + self.leaf"),
    ("self.frozen = torch.ones(4)", "x = x + self.frozen"),
    ("self.kept = torch.zeros(4)", "self.kept = x"),
    ("self.inner.mem = torch.zeros(4)", "x = x + self.inner(x)"),
]
_HEAD = """
class Inner(nn.Module):
    def forward(self, x):
        self.mem = self.mem.detach() * 0.5 + x
        return self.mem
"""
#: pieces of state that are buffers in some programs
_BUFFERS = ("mem", "average", "sum")


class Program:
    """A random module and a session.

    Args:
        seed: of the program.
    """

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        chosen = random.sample(STATEMENTS, random.randint(1, 4))
        lines = [_HEAD, "class Net(nn.Module):", "    def __init__(self):", "        super().__init__()",
                 "        self.linear, self.inner = nn.Linear(4, 4), Inner()", "        self.box = Box()"]
        for name in _BUFFERS:
            if random.random() < 0.3:
                lines.append(f"        self.register_buffer({name!r}, torch.zeros(4))")
        lines += [f"        self.reset_{i}()" for i in range(len(chosen))]
        for i, (reset, _) in enumerate(chosen):
            lines += [f"    def reset_{i}(self):", *(f"        {line}" for line in reset.split("\n"))]
        lines += ["    def forward(self, x):", *(f"        {line}" for _, each in chosen for line in each.split("\n")
                                                 if line.startswith("global"))]
        lines += [f"        {line}" for _, each in chosen for line in each.split("\n")
                  if not line.startswith("global")]
        attributes = [reset.split(" = ")[0] for reset, _ in chosen if "global" not in reset]
        returned = random.choice(attributes or ["x"])
        lines.append("        return x" if random.random() < 0.6 else f"        return x, {returned}")
        self.source, self.count = "\n".join(lines), len(chosen)
        self.dynamic = random.choice([None, None, None, True, False])
        self.actions = []
        for i in range(CALLS):
            action = random.choices(["", "reset", "mode", "no_grad", "backward", "detach", "other size"],
                                    [8, 2, 1, 1, 3, 1, 0])[0] if i > 1 else ""
            self.actions.append((action, random.randrange(self.count)))

    def run(self, compiled: bool) -> tuple[list[Any], Any]:
        """Run the session; return what was seen after each call, and the compiled module."""
        space: dict[str, Any] = {"torch": torch, "nn": nn, "deque": deque, "Box": type("Box", (), {}),
                                 "__name__": "stateful_program"}
        sys.modules["stateful_program"] = types.ModuleType("stateful_program")
        exec(compile(self.source, f"<doctest stateful {id(space)}>", "exec"), space)
        torch.manual_seed(0)
        net = space["Net"]()
        made = torch.compile(net, dynamic=self.dynamic) if compiled else net
        seen = []
        for i, (action, number) in enumerate(self.actions):
            if action == "reset":
                getattr(net, f"reset_{number}")()
            elif action == "mode":
                net.train(not net.training)
            elif action == "detach":
                _detach(net)
            try:
                with torch.set_grad_enabled(action != "no_grad"):
                    result = made(numbers(4, seed=i))
                if action == "backward":
                    first = result[0] if isinstance(result, tuple) else result
                    if first.requires_grad:
                        first.sum().backward()
                        _detach(net)
            except Exception as error:
                result = type(error).__name__
            state = {name: value for name, value in vars(net).items() if name[0] != "_"} | dict(net._buffers)
            state |= {"box": vars(net.box), "inner": vars(net.inner).get("mem"), "parameters": [*net.parameters()],
                      "globals": [space.get("LEVEL"), space.get("NUMBER")]}
            seen.append((_plain(result), _plain(state)))
        return seen, made


def _detach(net: Any) -> None:
    """Cut the state off from earlier calls.

    After a backward pass it leads to freed graphs. An eager result that does not depend on it may be differentiated; a
    compiled one leads to it if another result of the call depends on it, here and in PyTorch.
    """
    for name, value in [*vars(net).items()]:
        if name[0] != "_":
            setattr(net, name, _detached(value))
    for name, value in net._buffers.items():
        net._buffers[name] = _detached(value)


def _detached(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return x.detach()
    if isinstance(x, tuple):
        return tuple(map(_detached, x))
    if isinstance(x, dict):
        x.update({key: _detached(each) for key, each in x.items()})
    elif isinstance(x, (list, deque)):
        for i, each in enumerate(x):
            x[i] = _detached(each)
    return x


def _plain(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return (np.array(x.detach()._array), x.requires_grad, x.grad_fn is None, _plain(x.grad) if x.is_leaf else None)
    if isinstance(x, dict):
        return [(key, _plain(x[key])) for key in sorted(x)]
    if isinstance(x, (list, tuple, deque)):
        return type(x).__name__, [_plain(each) for each in x]
    return (type(x).__name__, x) if isinstance(x, (bool, int, float, str)) else type(x).__name__


def _differ(x: Any, y: Any) -> bool:
    if isinstance(x, np.ndarray):
        return not isinstance(y, np.ndarray) or x.shape != y.shape or x.dtype != y.dtype or not np.allclose(
            x, y, 1e-3, 1e-4, equal_nan=True)
    if isinstance(x, (list, tuple)):
        return type(x) is not type(y) or len(x) != len(y) or any(map(_differ, x, y))
    return type(x) is not type(y) or (abs(x - y) > 1e-9 if isinstance(x, float) else bool(x != y))


def failure(seed: int) -> str | None:
    """Return how a compiled program differs from the eager one; None if it does not."""
    program = Program(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want, _ = program.run(False)
        got, made = program.run(True)
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        if _differ(a, b):
            return f"{program.source}\n{program.actions}\ndynamic={program.dynamic}\ncall {i}:\n{a}\nnot\n{b}"
    _divided[seed] = compiled_of(made).split is not None
    return None


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replay", type=int)
    options = parser.parse_args()
    if options.replay is not None:
        sys.exit(failure(options.replay))
    started, failed, split = time.time(), [], 0
    for seed in range(options.seed, options.seed + options.programs):
        found = failure(seed)
        if found is not None:
            failed.append(seed)
            print(f"seed {seed} differs", flush=True)
        else:
            split += _divided[seed]
    print(f"{options.programs} programs, {len(failed)} differ: {failed}; {split} were divided; "
          f"{time.time() - started:.0f} s")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
