"""Deferred accumulation: the gradient of a reused weight equals the sum of PyTorch's steps.

Numbers are small integers, so that sums are exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

import flambeau
from flambeau.engine.rules import deferred_accumulation
from flambeau.engine.rules.deferred_accumulation import DeferredOuterProduct, DeferredRowSum
from tests.autograd.differential import function, same

STEPS = 7


def numbers(torch: Any, *shape: int, seed: int) -> Any:
    """-1, 0 and 1, as they come."""
    torch.manual_seed(seed)
    return torch.randint(-1, 2, shape).float()


def leaves(torch: Any) -> tuple[Any, Any, Any]:
    """Inputs of all steps, a weight and a bias, large enough for kernels."""
    return (numbers(torch, STEPS, 8, 64, seed=1), numbers(torch, 64, 64, seed=2).requires_grad_(),
            numbers(torch, 64, seed=3).requires_grad_())


def step(torch: Any, x: Any, w: Any, b: Any) -> Any:
    """What keeps numbers small and is not linear."""
    return torch.nn.functional.linear(x, w, b).clamp(-2, 2)


def loss(torch: Any, xs: Any, w: Any, b: Any, h: Any = None) -> Any:
    for x in xs.unbind():
        h = step(torch, x if h is None else x + h, w, b)
    return h.sum()


def backward(torch: Any) -> Any:
    xs, w, b = leaves(torch)
    loss(torch, xs, w, b).backward()
    return w.grad, b.grad


def inputs_too(torch: Any) -> Any:
    xs, w, b = leaves(torch)
    xs.requires_grad_()
    loss(torch, xs, w, b).backward()
    return xs.grad, w.grad, b.grad


def twice(torch: Any) -> Any:
    xs, w, b = leaves(torch)
    y = loss(torch, xs, w, b)
    y.backward(retain_graph=True)
    before = w.grad.clone()
    y.backward()
    return before, w.grad, b.grad


def into_gradients_that_are_there(torch: Any) -> Any:
    xs, w, b = leaves(torch)
    w.grad, b.grad = torch.ones(64, 64), torch.ones(64)
    kept = w.grad
    loss(torch, xs, w, b).backward()
    return w.grad, b.grad, kept is w.grad, kept._version


def grad(torch: Any) -> Any:
    xs, w, b = leaves(torch)
    return torch.autograd.grad(loss(torch, xs, w, b), (w, b))


def grad_of_an_edge(torch: Any) -> Any:
    xs, w, b = leaves(torch)
    y = loss(torch, xs, w, b)
    turned = y.grad_fn.next_functions[0][0].next_functions[0][0].next_functions[2][0]
    edge = torch.autograd.graph.GradientEdge(turned, 0)
    return turned, torch.autograd.grad(y, (edge, w))


def second_order(torch: Any) -> Any:
    xs, w, b = leaves(torch)
    first = torch.autograd.grad(loss(torch, xs, w, b), (w, b), create_graph=True)
    return torch.autograd.grad((first[0] * w).sum() + first[1].sum(), w)


def hooks(torch: Any) -> Any:
    """On the weight, on its transpose in one of the steps, on its accumulator, and after it."""
    xs, w, b = leaves(torch)
    seen: list[Any] = []
    y = loss(torch, xs, w, b)
    turned = y.grad_fn.next_functions[0][0].next_functions[0][0].next_functions[2][0]
    turned.register_prehook(lambda g: seen.append(("transpose", g[0].clone())))
    turned.register_hook(lambda given, _: seen.append(("weight's share", given[0].clone())))
    w.register_hook(lambda g: g * 2)
    accumulator = turned.next_functions[0][0]
    accumulator.register_prehook(lambda g: seen.append(("all", g[0].clone())))
    b.register_post_accumulate_grad_hook(lambda p: seen.append(("bias", p.grad.clone())))
    y.backward()
    return [text for text, _ in seen], [value for _, value in seen], w.grad, b.grad


def used_elsewhere(torch: Any) -> Any:
    """Before, between and behind."""
    xs, w, b = leaves(torch)
    first = (w * 3).sum() + b.sum()
    h = step(torch, xs[0], w, b)
    h = step(torch, h @ w, w, b)
    y = first + step(torch, h, w, b).sum() + (w * w).sum() + (b * 2).sum()
    y.backward()
    return w.grad, b.grad


def several_biases(torch: Any) -> Any:
    xs, w, b = leaves(torch)
    c = numbers(torch, 64, seed=4).requires_grad_()
    h = xs[0]
    for i, x in enumerate(xs.unbind()):
        h = step(torch, x + h, w, (b, c)[i % 2])
    h.sum().backward()
    return w.grad, b.grad, c.grad


def weights_that_are_no_leaves(torch: Any) -> Any:
    xs, w, b = leaves(torch)
    v, c = w * 2, b + 1
    loss(torch, xs, v, c).backward()
    return w.grad, b.grad


def transposed_weight(torch: Any) -> Any:
    xs, _, b = leaves(torch)
    w = numbers(torch, 64, 64, seed=2).t().requires_grad_()
    loss(torch, xs, w, b).backward()
    return w.grad, b.grad


def an_error_on_the_way(torch: Any) -> Any:
    """What leaves have then: nothing of a weight that still waited."""
    xs, w, b = leaves(torch)
    a = numbers(torch, 64, seed=5).requires_grad_()

    def fail(ctx: Any, g: Any) -> Any:
        raise ValueError("no")

    h = function(torch, lambda ctx, x: x.clone(), fail)(step(torch, xs[0] * a, w, b))
    y = loss(torch, xs, w, b, h)
    try:
        y.backward()
    except ValueError as error:
        return str(error), w.grad, a.grad


def inputs_without_gradients(torch: Any) -> Any:
    """Batches one by one through the same layer."""
    xs, w, b = leaves(torch)
    sum(step(torch, x, w, b).sum() for x in xs.unbind()).backward()
    return w.grad, b.grad


PROGRAMS: list[Callable[[Any], Any]] = [
    backward, inputs_too, twice, into_gradients_that_are_there, grad, grad_of_an_edge, second_order, hooks,
    used_elsewhere, several_biases, weights_that_are_no_leaves, transposed_weight, an_error_on_the_way,
    inputs_without_gradients]


@pytest.mark.parametrize("rows", [1, 20, 1 << 20])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_equals_pytorch(program: Callable[[Any], Any], rows: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(deferred_accumulation, "FLUSH_ROWS", rows)
    same(program)


@pytest.mark.skipif(not flambeau.codegen.available(), reason="there are no kernels")
def test_all_steps_but_the_first_are_deferred(monkeypatch: Any) -> None:
    found = []
    fold = deferred_accumulation.DeferredSum._evaluate

    def watched(self: Any) -> None:
        if self.cotangents:
            found.append((type(self), len(self.cotangents)))
        fold(self)

    monkeypatch.setattr(deferred_accumulation.DeferredSum, "_evaluate", watched)
    backward(flambeau)
    assert sorted(found, key=str) == [(DeferredOuterProduct, STEPS - 1), (DeferredRowSum, STEPS - 1)]
    found.clear()
    monkeypatch.setattr(import_module("flambeau._tensor.linalg.linear"), "MAX_DEFERRED_ROWS", 4)
    backward(flambeau)
    assert not found


@pytest.mark.skipif(not flambeau.codegen.available(), reason="there are no kernels")
def test_one_use_is_computed_at_once(monkeypatch: Any) -> None:
    def refused(self: Any, *args: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(deferred_accumulation.DeferredOuterProduct, "__init__", refused)
    xs, w, b = leaves(flambeau)
    for x in xs.unbind():  # a graph of its own each time
        step(flambeau, x, w, b).sum().backward()
    y = step(flambeau, xs[0], w, b)
    accumulator = y.grad_fn.next_functions[0][0].next_functions[2][0].next_functions[0][0]
    y.sum().backward()
    for x in xs.unbind():  # while the accumulator stays
        step(flambeau, x, w, b).sum().backward()
        flambeau.autograd.grad(step(flambeau, x, w, b).sum(), (w, b))
    assert accumulator.variable is w
    layer = flambeau.nn.Linear(64, 64)
    layer(layer.weight).sum().backward()
