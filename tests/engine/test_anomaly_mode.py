"""Anomaly mode: tracebacks of nodes and of their parent nodes; errors in rules."""

from __future__ import annotations

import warnings

import pytest

import flambeau as torch
from flambeau.autograd import detect_anomaly
from tests.autograd.differential import outcome, pytorch, same


def without_traces(found):
    result, caught = found
    return result, [w.partition(":\n")[0] for w in caught]


def alike(program):
    if pytorch is None:
        pytest.skip("PyTorch is not installed")
    mine, theirs = without_traces(outcome(program, torch)), without_traces(outcome(program, pytorch))
    assert mine == theirs
    return mine


def broken(torch):
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 2 + y

        @staticmethod
        def backward(ctx, g):
            return g, g * float("nan")

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return Broken.apply(g * x, g + x)

    return Outer.apply


@pytest.mark.parametrize("forward_too", [True, False])
def test_double_backward_names_the_inducing_node(forward_too):
    def program(torch):
        x = torch.ones(2, requires_grad=True)
        with torch.autograd.set_detect_anomaly(forward_too):
            g, = torch.autograd.grad(broken(torch)(x).sum(), x, create_graph=True)
        with torch.autograd.set_detect_anomaly(True):
            return g.sum().backward()

    result, caught = alike(program)
    assert "returned nan values in its 1th output" in result
    assert len(caught) == 1 + forward_too


def test_each_generation_is_named():
    def program(torch):
        x = torch.full((2,), 1.0, requires_grad=True)
        with torch.autograd.detect_anomaly():
            g, = torch.autograd.grad(x.pow(3).sum(), x, create_graph=True)
            h, = torch.autograd.grad(g.sum(), x, create_graph=True)
            h.register_hook(lambda t: t * float("nan"))
            h.sum().backward()

    _, caught = alike(program)
    assert [w.split()[0:5] for w in caught[2:]] == [["UserWarning:", "Previous", "calculation", "was", "induced"]] * 2


def test_the_hint_of_an_overwritten_value_is_another_one():
    def program(torch):
        x = torch.ones(2, requires_grad=True)
        with torch.autograd.set_detect_anomaly(True):
            y = x * 1
            z = y * y
            y.add_(1)
            z.sum().backward()

    assert "Good luck!" in alike(program)[0]


def test_the_trace_shows_the_callers_line():
    with warnings.catch_warnings(record=True) as caught, pytest.raises(RuntimeError):
        warnings.simplefilter("always")
        with detect_anomaly():
            y = torch.zeros(2, requires_grad=True) * 0
            (y / y).sum().backward()
    assert "(y / y).sum().backward()" in str(caught[1].message)
    assert caught[1].filename == __file__


def test_warnings_that_are_errors_do_not_hide_the_error(capsys):
    with warnings.catch_warnings(), pytest.raises(RuntimeError, match="returned nan values"):
        warnings.simplefilter("ignore")
        with detect_anomaly():
            warnings.simplefilter("error")
            y = torch.zeros(2, requires_grad=True) * 0
            (y / y).sum().backward()
    assert "Error detected in DivBackward0" in capsys.readouterr().err


def test_queries_of_the_mode():
    same(lambda torch: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()))


@pytest.mark.parametrize("kind", ["register_hook", "register_prehook"])
@pytest.mark.parametrize("function", ["linear", "tanh", "sum"])
def test_hooks_of_nodes_made_in_the_mode_are_called_outside_of_it(kind, function):
    def program(torch):
        called = []
        x = torch.ones(2, 2, requires_grad=True)
        with torch.autograd.set_detect_anomaly(True):
            y = torch.nn.functional.linear(x, x) if function == "linear" else getattr(torch, function)(x)
        getattr(y.grad_fn, kind)(lambda *grads: called.append(len(grads)))
        y.sum().backward()
        return called

    assert alike(program)[0] == [2 if kind == "register_hook" else 1]
