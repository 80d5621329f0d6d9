"""Nested backward: tracebacks of errors from `backward()` down to the rule."""

from __future__ import annotations

import sys

import pytest

import flambeau as torch
from flambeau.ops.declare import REGISTRY


class Stop(Exception):
    pass


def frames_of(run):
    """The names of the functions between `run` and the error that it ends with."""
    with pytest.raises(Stop) as caught:
        run()
    names = [entry.name for entry in caught.traceback]
    return names[names.index("run"):] if "run" in names else names


def in_order(names, *wanted):
    """Whether the expected names are among the names, in this order."""
    rest = iter(names)
    return all(any(name == want for name in rest) for want in wanted)


def stop(*_):
    raise Stop


def test_a_functions_backward_is_below_the_call_of_backward():
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise Stop

    def run():
        Broken.apply(torch.ones(2, requires_grad=True)).sum().backward()

    names = frames_of(run)
    assert in_order(names, "run", "backward", "run_backward", "evaluate", "vjp", "backward")
    assert names[-1] == "backward"


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_rule_is_below_the_call_of_backward(monkeypatch, create_graph):
    """A declared operator's own rule: here one that stops, put in the place of sinh's for the time of the test."""
    x = torch.ones(2, requires_grad=True)
    y = torch.sinh(x).sum()
    node = y.grad_fn.next_functions[0][0]
    assert node.op is REGISTRY["sinh"]

    def rule(*_):
        raise Stop

    node.plan = type("Plan", (), {name: getattr(node.plan, name) for name in dir(node.plan)
                                  if not name.startswith("__")})()
    node.plan.steps = tuple((position, rule, pick) for position, _, pick in node.plan.steps)
    node.run = None

    def run():
        torch.autograd.grad(y, x, create_graph=create_graph)

    names = frames_of(run)
    assert in_order(names, "run", "grad", "run_backward", "step", "evaluate", "vjp", "rule")


def test_a_tensors_hook_is_below_the_call_of_backward():
    def run():
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        y.register_hook(stop)
        y.sum().backward()

    assert in_order(frames_of(run), "run", "backward", "run_backward", "call_tensor_hooks", "stop")


def test_a_nodes_hooks_and_an_accumulated_gradients_are_too():
    def after_node():
        y = torch.ones(2, requires_grad=True) * 2
        y.grad_fn.register_hook(stop)
        y.sum().backward()

    def before_node():
        y = torch.ones(2, requires_grad=True) * 2
        y.grad_fn.register_prehook(stop)
        y.sum().backward()

    def accumulated():
        x = torch.ones(2, requires_grad=True)
        x.register_post_accumulate_grad_hook(stop)
        (x * 2).sum().backward()

    for run, where in ((after_node, "call_post_hooks"), (before_node, "call_pre_hooks"), (accumulated, "accumulate")):
        names = frames_of(run)
        assert in_order(names, run.__name__, "backward", "run_backward", where, "stop"), names


def test_locals_can_be_looked_at_from_within_a_hook():
    """What a debugger does: walk up the frames, see the node that is running."""
    seen = {}

    def hook(g):
        frame = sys._getframe()
        while frame is not None:
            seen.setdefault(frame.f_code.co_name, frame.f_locals.get("node"))
            frame = frame.f_back

    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y.register_hook(hook)
    y.sum().backward()
    assert seen["evaluate"] is y.grad_fn
    assert "test_locals_can_be_looked_at_from_within_a_hook" in seen
