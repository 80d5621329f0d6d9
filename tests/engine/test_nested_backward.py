"""Reentrant backward: nesting depth, the caller's modes, and propagation of errors."""

from __future__ import annotations

import gc
import threading
from typing import ClassVar

import pytest

import flambeau as torch
from flambeau.engine.execution.reentrant import PER_THREAD
from flambeau.engine.nodes.leaf_hooks import LeafHooks
from tests.autograd.differential import same


class Again(torch.autograd.Function):
    """Runs itself once more in backward, while the value is above zero."""

    seen: ClassVar[list[tuple]] = []
    at_the_end: ClassVar[Exception | None] = None

    @staticmethod
    def forward(ctx, x):
        ctx.value = x.item()
        return x * 1

    @staticmethod
    def backward(ctx, g):
        Again.seen.append((threading.get_ident(), torch.is_grad_enabled()))
        if ctx.value > 0:
            with torch.enable_grad():
                Again.apply(torch.tensor(ctx.value - 1, requires_grad=True)).backward()
        elif Again.at_the_end is not None:
            raise Again.at_the_end
        return g


@pytest.fixture(autouse=True)
def fresh():
    Again.seen, Again.at_the_end = [], None


@pytest.mark.parametrize("depth", [0, PER_THREAD - 1, PER_THREAD, 40 * PER_THREAD])
def test_any_depth(depth):
    x = torch.tensor(float(depth), requires_grad=True)
    Again.apply(x).backward()
    assert x.grad.item() == 1
    assert len(Again.seen) == depth + 1
    assert not any(grad for _, grad in Again.seen)
    assert len({thread for thread, _ in Again.seen}) == 1 + depth // PER_THREAD


def test_an_error_propagates_through_all_threads():
    Again.at_the_end = ValueError("deep down")
    with pytest.raises(ValueError, match="deep down"):
        Again.apply(torch.tensor(3.0 * PER_THREAD, requires_grad=True)).backward()
    x = torch.tensor(0.0, requires_grad=True)
    Again.at_the_end = None
    Again.apply(x).backward()
    assert x.grad.item() == 1


def callback(torch, what):
    torch.autograd.Variable._execution_engine.queue_callback(what)


@pytest.mark.parametrize("with_hooks", [False, True])
def test_callbacks_run_after_accumulation(with_hooks):
    def program(torch):
        seen = []
        x = torch.ones(2, requires_grad=True)
        if with_hooks:  # the other way through the graph
            x.register_hook(lambda g: None)

        def last():
            seen.append(["last", x.grad, torch.is_grad_enabled()])

        def first():
            seen.append(["first", x.grad])
            callback(torch, last)

        y = x * 2
        y.register_hook(lambda g: callback(torch, first))
        y.sum().backward()
        return seen

    same(program)


def test_callbacks_belong_to_their_own_pass():
    def program(torch):
        seen = []
        x, z = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)

        def inner(g):
            with torch.enable_grad():
                w = z * 3
                w.register_hook(lambda g: callback(torch, lambda: seen.append(["inner", z.grad, x.grad])))
                w.sum().backward()
            seen.append(["between"])
            callback(torch, lambda: seen.append(["outer", z.grad, x.grad]))

        y = x * 2
        y.register_hook(inner)
        y.sum().backward()
        return seen

    same(program)


def test_callbacks_raise_outside_of_backward():
    same(lambda torch: callback(torch, lambda: None))


def test_leaves_may_be_freed_while_hooks_are_collected():
    """The collector may take leaves with hooks away at any time, and so while all of them are gone through."""
    before = gc.get_threshold()
    gc.collect()
    gc.disable()
    try:
        leaves = [torch.zeros(1, requires_grad=True) for _ in range(5000)]  # more than Python has tuples in stock
        for leaf in leaves:
            leaf.register_hook(lambda g: g).remove()
            leaf.circle = leaf  # only the collector takes it away
        del leaves, leaf
        gc.set_threshold(gc.get_count()[0] + 1000)
        gc.enable()
        assert not LeafHooks.any()
    finally:
        gc.set_threshold(*before)
        gc.enable()
