"""Multi-grad hooks: when they are called, and with which arguments."""

from __future__ import annotations

import threading

import pytest

import flambeau as torch
from flambeau.autograd.graph import register_multi_grad_hook


def leaves(*values):
    return [torch.tensor(v, requires_grad=True) for v in values]


def shown(grads):
    return [None if g is None else g.item() for g in grads]


def test_it_waits_for_all():
    a, b, c = leaves(1.0, 2.0, 3.0)
    seen = []
    register_multi_grad_hook((a, b, c), lambda grads: seen.append(shown(grads)))
    (a * b * c).backward()
    assert seen == [[6.0, 3.0, 2.0]]


def test_it_does_not_wait_for_unused_tensors():
    a, b, c = leaves(1.0, 2.0, 3.0)
    seen = []
    register_multi_grad_hook((a, b, c), lambda grads: seen.append(shown(grads)))
    (a * b).backward()
    (c * 2).backward()
    assert seen == [[2.0, 1.0, None], [None, None, 2.0]]


def test_inner_tensors_and_functions():
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

    a, b = leaves(1.0, 2.0)
    x, y = a * 2, Same.apply(b)
    seen = []
    register_multi_grad_hook((x, y), lambda grads: seen.append(shown(grads)))
    out = x * y
    out.backward(inputs=(a, b), retain_graph=True)
    out.backward(inputs=[b], retain_graph=True)
    out.backward(retain_graph=True)
    assert seen == [[2.0, 2.0], [None, 2.0], [2.0, 2.0]]


def test_backward_with_inputs():
    a, b, c = leaves(1.0, 2.0, 3.0)
    x, y, z = a * 1, b * 1, c * 1
    seen = []
    register_multi_grad_hook((x, y, z), lambda grads: seen.append(shown(grads)))
    out = x * y
    torch.autograd.grad(out, [y], retain_graph=True)
    assert seen == [[None, 1.0, None]]
    torch.autograd.grad(out, [a, b], retain_graph=True)
    assert seen[1] == [2.0, 1.0, None]


def test_an_error_resets_it():
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise ValueError("broken")

    a, b = leaves(1.0, 2.0)
    seen = []
    x, y = a * 1, b * 1
    register_multi_grad_hook((x, y), lambda grads: seen.append(shown(grads)))
    with pytest.raises(ValueError, match="broken"):
        (Fails.apply(x) * y).backward()
    assert not seen
    (x * y).backward()
    assert seen == [[2.0, 1.0]]


def test_any_is_called_once_in_each_backward():
    a, = leaves(2.0)
    x = a * 1
    pair = x.sin(), x.cos()
    seen = []
    handle = register_multi_grad_hook((*pair, torch.ones(1)), lambda g: seen.append(g.item()), mode="any")
    assert len(handle.handles) == 2
    for _ in range(2):
        (pair[0] + pair[1]).backward(retain_graph=True)
    assert seen == [1.0, 1.0]


def test_removed():
    a, b = leaves(1.0, 2.0)
    seen = []
    handle = register_multi_grad_hook((a, b), seen.append)
    handle.remove()
    with register_multi_grad_hook((a, b), seen.append):
        pass
    (a * b).backward()
    assert not seen


def test_double_backward():
    a, b = leaves(3.0, 2.0)
    seen = []
    x, y = a * 1, b * 1
    register_multi_grad_hook((x, y), lambda grads: seen.append([g.requires_grad for g in grads]))
    torch.autograd.grad(x * x * y, [x, y], create_graph=True)
    assert seen == [[True, True]]


def test_nested_backward():
    a, b = leaves(3.0, 2.0)
    seen = []
    x, y = a * 1, b * 1
    register_multi_grad_hook((x, y), lambda grads: seen.append(shown(grads)))
    inner = (x * y) * 10

    class Backward(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return t.clone()

        @staticmethod
        def backward(ctx, g):
            inner.backward(retain_graph=True)
            return g

    (Backward.apply(x) * y).backward()
    assert sorted(seen) == [[2.0, 3.0], [20.0, 30.0]]


def test_threads():
    a, b = leaves(1.0, 2.0)
    seen = []
    register_multi_grad_hook((a, b), lambda grads: seen.append(shown(grads)))

    def work():
        for _ in range(20):
            torch.autograd.backward(a * b * 2)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [[4.0, 2.0]] * 80


def test_errors():
    a, = leaves(1.0)
    with pytest.raises(ValueError, match=r"Expects mode to be one of \('all', 'any'\) but got first"):
        register_multi_grad_hook((a,), print, mode="first")
    with pytest.raises(AssertionError, match="Expected gradient function to be set"):
        register_multi_grad_hook((a, torch.ones(1)), print)
    assert register_multi_grad_hook((), print).handles == ()
