"""Hooks on tensors and nodes: order, arguments and return values."""

from __future__ import annotations

import pytest

import flambeau as torch


def test_a_tensor_hook_replaces_the_gradient():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert x.grad.tolist() == [20.0, 20.0]


def test_a_hook_that_returns_none_changes_nothing():
    seen = []
    x = torch.tensor(2.0, requires_grad=True)
    x.register_hook(lambda g: seen.append(g.item()))
    (x * x).backward()
    assert seen == [4.0]
    assert x.grad.item() == 4.0


def test_hooks_run_in_order_and_see_each_others_result():
    x = torch.tensor(1.0, requires_grad=True)
    y = x * 1
    y.register_hook(lambda g: g + 1)
    y.register_hook(lambda g: g * 10)
    y.backward()
    assert x.grad.item() == 20.0


def test_a_leaf_hook_sees_the_sum_once():
    calls = []
    w = torch.tensor(1.0, requires_grad=True)
    w.register_hook(lambda g: calls.append(g.item()))
    (w * 2 + w * 3).backward()
    assert calls == [5.0]


def test_a_removed_hook_is_not_called():
    calls = []
    x = torch.tensor(1.0, requires_grad=True)
    handle = x.register_hook(lambda g: calls.append(1))
    (x * 2).backward()
    handle.remove()
    handle.remove()
    (x * 2).backward()
    assert calls == [1]


def test_node_hooks_before_and_after():
    order = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    y.grad_fn.register_prehook(lambda outs: order.append(("before", len(outs))))
    y.grad_fn.register_hook(lambda ins, outs: order.append(("after", len(ins), len(outs))))
    y.sum().backward()
    assert order == [("before", 1), ("after", 2, 1)]


def test_node_hooks_may_replace():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    y.grad_fn.register_prehook(lambda outs: (outs[0] * 2,))
    y.grad_fn.register_hook(lambda ins, outs: (ins[0] + 1, None))
    y.sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]


def test_leaves_accumulate_as_soon_as_they_are_ready():
    order = []
    early = torch.tensor(1.0, requires_grad=True)
    late = torch.tensor(1.0, requires_grad=True)
    a = late * 2
    b = a * early
    early.register_hook(lambda g: order.append("early"))
    a.register_hook(lambda g: order.append("a"))
    late.register_hook(lambda g: order.append("late"))
    b.backward()
    assert order == ["early", "a", "late"]


def test_retain_grad_runs_after_hooks():
    x = torch.tensor(1.0, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    y.backward()
    assert y.grad.item() == 5.0
    assert y.retains_grad


def test_post_accumulate_hooks_see_the_tensor():
    seen = []
    x = torch.tensor(1.0, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))
    (x * 4).backward()
    (x * 4).backward()
    assert seen == [4.0, 8.0]
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 1).register_post_accumulate_grad_hook(print)


@pytest.mark.parametrize(("returned", "error"), [
    (lambda: 5, TypeError),
    (lambda: torch.ones(3), RuntimeError),
    (lambda: torch.ones(2, dtype=torch.float64), RuntimeError),
])
def test_a_hook_may_not_change_metadata(returned, error):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: returned())
    with pytest.raises(error):
        y.sum().backward()


def test_no_hook_without_grad():
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torch.ones(1).register_hook(print)


def test_hooks_see_gradients_with_history_under_create_graph():
    x = torch.tensor(3.0, requires_grad=True)
    y = x * x
    y.register_hook(lambda g: g * x)
    first, = torch.autograd.grad(y, x, create_graph=True)  # 2 x^2
    second, = torch.autograd.grad(first, x)
    assert (first.item(), second.item()) == (18.0, 12.0)


def test_hooks_on_a_leafs_own_node_run():
    order = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    node = y.grad_fn.next_functions[0][0]
    node.register_prehook(lambda outs: order.append("before"))
    node.register_hook(lambda ins, outs: order.append((len(ins), outs[0].tolist())))
    y.sum().backward()
    assert order == ["before", (0, [3.0, 3.0])]
    assert x.grad.tolist() == [3.0, 3.0]


def test_pre_hook_of_a_function_with_a_result_that_is_no_tensor():
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, a, y):
            return x * a, a, y * a, torch.tensor([1])

        @staticmethod
        def backward(ctx, g, ga, h, gi):
            return g, None, h

    x, y, seen = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True), []
    out = Doubled.apply(x, 3, y)
    out[0].grad_fn.register_prehook(seen.extend)
    out[0].sum().backward()
    assert [g is None for g in seen] == [False, True, True, True]
