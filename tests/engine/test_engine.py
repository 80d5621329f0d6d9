"""backward and grad: accumulation, retained and freed graphs, targets, several roots, deep graphs, threads."""

from __future__ import annotations

import gc
import threading
import warnings
import weakref

import numpy as np
import pytest

import flambeau as torch
from flambeau.engine.engine import run_backward


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


def test_gradients_accumulate_over_backward_calls():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    first = x.grad
    (x * x).sum().backward()
    assert x.grad is first  # in place, as references to it expect
    assert x.grad.tolist() == [4.0, 8.0]


def test_a_shared_subexpression_is_summed_once_each_way():
    x = torch.tensor(3.0, requires_grad=True)
    y = x * x
    (y * y + y).backward()
    assert x.grad.item() == 4 * 27 + 6


def test_gradients_of_two_leaves_do_not_share_memory():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    g = torch.ones(2)
    (x + y).backward(g)
    x.grad[0] = 7.0
    assert y.grad.tolist() == [1.0, 1.0]
    assert g.tolist() == [1.0, 1.0]


def test_gradients_do_not_alias_saved_tensors():
    x, w = leaf(1.0, 2.0), leaf(5.0, 6.0)
    out = (x * w).sum()
    out.backward(retain_graph=True)
    x.grad.zero_()
    assert w.tolist() == [5.0, 6.0]


@pytest.mark.parametrize("again", [lambda z: z.backward(), lambda z: z.grad_fn(torch.tensor(1.0))])
def test_a_freed_graph_raises(again):
    x = torch.tensor(2.0, requires_grad=True)
    z = x * x
    z.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        again(z)


@pytest.mark.parametrize("apply", [
    lambda x: x[:, torch.tensor([0, 1])], lambda x: x[None, True], lambda x: x[..., torch.tensor([0])],
    lambda x: x[torch.tensor([0])], lambda x: torch.fft.rfft(x).real], ids=[
        "dim 1", "bool", "last", "first", "fft"])
def test_second_pass_fails_whatever_position_the_saved_input_has(apply):
    x = torch.ones(2, 3, requires_grad=True)
    y = apply(x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_a_graph_that_saved_nothing_may_be_walked_again():
    x = leaf(1.0, 2.0)
    z = (x + 1).sum()
    z.backward()
    z.backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_retain_graph_keeps_it():
    x = torch.tensor(2.0, requires_grad=True)
    z = x**3
    z.backward(retain_graph=True)
    z.backward()
    assert x.grad.item() == 24.0


def test_grad_leaves_dot_grad_alone_and_reaches_inner_tensors():
    x = torch.tensor(2.0, requires_grad=True)
    inner = x**2
    z = inner * 5
    of_inner, of_leaf = torch.autograd.grad(z, [inner, x])
    assert (of_inner.item(), of_leaf.item(), x.grad) == (5.0, 20.0, None)


def test_unused_inputs():
    x, other = torch.tensor(2.0, requires_grad=True), torch.tensor(1.0, requires_grad=True)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad(x * x, [x, other])
    assert torch.autograd.grad(x * x, [x, other], allow_unused=True)[1] is None
    assert torch.autograd.grad(x * x, [x, other], materialize_grads=True)[1].item() == 0.0
    with pytest.raises(ValueError, match="materialize_grads"):
        torch.autograd.grad(x * x, [x], materialize_grads=True, allow_unused=False)


def test_backward_into_chosen_inputs():
    x, y = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    inner = x * y
    (inner * inner).backward(inputs=[y, inner])
    assert x.grad is None
    assert y.grad.item() == 2 * 6 * 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert inner.grad.item() == 12.0


def test_several_roots_each_with_its_cotangent():
    x = torch.tensor(2.0, requires_grad=True)
    torch.autograd.backward([x**2, x**3], grad_tensors=[torch.tensor(1.0), torch.tensor(10.0)])
    assert x.grad.item() == 4 + 120


def test_a_root_that_is_a_leaf():
    x = torch.tensor(2.0, requires_grad=True)
    x.backward()
    torch.autograd.backward([x, x * 3])
    assert x.grad.item() == 1 + 1 + 3


@pytest.mark.parametrize(("call", "error"), [
    (lambda x: (x + 1).backward(), "grad can be implicitly created only for scalar outputs"),
    (lambda x: (x + 1).backward(torch.ones(3)), r"Mismatch in shape: grad_output\[0\] has a shape of"),
    (lambda x: torch.ones(()).backward(), "element 0 of tensors does not require grad and does not have a grad_fn"),
    (lambda x: (x + 1).sum().backward(inputs=[]), "cannot be empty"),
    (lambda x: torch.autograd.grad((x + 1).sum(), torch.ones(2)), "does not require grad"),
])
def test_errors_of_roots_and_inputs(call, error):
    with pytest.raises(RuntimeError, match=error):
        call(leaf(1.0, 2.0))


def test_higher_orders():
    x = torch.tensor(2.0, requires_grad=True)
    first, = torch.autograd.grad(x**4, x, create_graph=True)
    second, = torch.autograd.grad(first, x, create_graph=True)
    third, = torch.autograd.grad(second, x, create_graph=True)
    fourth, = torch.autograd.grad(third, x)
    assert [t.item() for t in (first, second, third, fourth)] == [32.0, 48.0, 48.0, 24.0]
    assert first.requires_grad
    assert not fourth.requires_grad


def test_create_graph_in_backward_warns_of_the_cycle():
    x = torch.tensor(2.0, requires_grad=True)
    with pytest.warns(UserWarning, match="will create a reference cycle"):
        (x**3).backward(create_graph=True)
    assert x.grad.requires_grad
    x.grad = None


def test_batched_cotangents():
    x = leaf(1.0, 2.0, 3.0)
    rows, = torch.autograd.grad(x * x, x, torch.eye(3), is_grads_batched=True)
    assert rows.tolist() == [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 6.0]]
    with pytest.raises(RuntimeError, match="is_grads_batched=True"):
        torch.autograd.grad(x * x, x, torch.ones(3), is_grads_batched=True)


def test_the_engine_is_usable_after_a_hook_raised():
    x = leaf(1.0, 2.0)
    y = x * 2

    def fail(grad):
        raise ValueError("no")

    handle = y.register_hook(fail)
    with pytest.raises(ValueError, match="no"):
        y.sum().backward()
    assert torch.is_grad_enabled()
    assert x.grad is None
    handle.remove()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("length", [100_000])
def test_deep_graphs_run_and_are_dropped_without_recursion(length):
    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(length):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0
    y = x
    for _ in range(length):
        y = y * 1
    del y  # without having been run


def test_a_dropped_graph_is_freed_without_the_garbage_collector():
    gc.collect()
    gc.disable()
    try:
        x = leaf(1.0, 2.0)
        y = (x.exp() * x).tanh().sum()
        inner = weakref.ref(y.grad_fn.next_functions[0][0])
        y.backward()
        assert inner() is not None
        del y
        assert inner() is None
    finally:
        gc.enable()


def test_a_dropped_leaf_is_freed_without_the_garbage_collector():
    gc.disable()
    try:
        x = leaf(1.0)
        (x * 2).sum().backward()
        gone = weakref.ref(x)
        del x
        assert gone() is None
    finally:
        gc.enable()


def test_independent_graphs_run_in_parallel_threads():
    results: list[list[float]] = [[] for _ in range(8)]

    def work(k: int) -> None:
        x = torch.tensor([float(k + 1), 2.0], requires_grad=True)
        for _ in range(200):
            x.grad = None
            (x * x * x).sum().backward()
            results[k].append(x.grad[0].item())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k in range(8):
        assert results[k] == [3.0 * (k + 1) ** 2] * 200


def test_threads_sharing_a_leaf_lose_no_gradient():
    w = torch.zeros(64, requires_grad=True)

    def work() -> None:
        for _ in range(300):
            (w * 1.0).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert w.grad.tolist() == [2400.0] * 64


def test_grad_mode_belongs_to_the_thread():
    seen = []
    with torch.no_grad():
        t = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        t.start()
        t.join()
    assert seen == [True]


def test_run_backward_returns_arrays_or_tensors():
    x = leaf(1.0, 2.0)
    y = x * x
    edge = (y.grad_fn, 0)
    target = (y.grad_fn.next_functions[0][0], 0)
    plain = run_backward([edge], [torch.ones(2)], retain=True, create=False, targets=[target])
    graph = run_backward([edge], [torch.ones(2)], retain=True, create=True, targets=[target])
    assert isinstance(plain[target], np.ndarray)
    assert graph[target].requires_grad
    assert plain[target].tolist() == graph[target].tolist() == [2.0, 4.0]
