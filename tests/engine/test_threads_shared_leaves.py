"""Concurrent backward passes to shared leaves, and interrupts during backward."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

import flambeau as torch

from ..random_programs.threads import strained


def test_threads_that_share_leaves_lose_no_gradient():
    work = strained(2.0)
    assert work.rounds >= 8


def chain(x, length=2000):
    y = x
    for _ in range(length):
        y = y * 1.0 + 0.0
    return y


def works(x):
    """Whether modes are as they should be and backward still gives the gradient it should."""
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()
    x.grad = None
    (chain(x, 5) * 2).sum().backward()
    return np.array_equal(x.grad.numpy(), np.full(x.shape, 2.0))


@pytest.mark.parametrize("create_graph", [False, True])
def test_an_interrupt_in_a_hook_leaves_the_engine_usable(create_graph):
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    other = torch.ones(3, dtype=torch.float64, requires_grad=True)
    y = x * 2

    def interrupt(g):
        raise KeyboardInterrupt

    handle = y.register_hook(interrupt)
    loss = (y * other).sum()
    with pytest.raises(KeyboardInterrupt):
        torch.autograd.grad(loss, [x], create_graph=create_graph, retain_graph=True)
    with pytest.raises(KeyboardInterrupt):
        loss.backward(retain_graph=True)
    assert x.grad is None
    handle.remove()
    other.grad = None
    loss.backward()
    assert np.array_equal(x.grad.numpy(), np.full(3, 2.0))
    assert np.array_equal(other.grad.numpy(), np.full(3, 2.0))
    assert works(x)


def test_leaves_that_were_finished_before_an_error_have_their_gradients():
    early = torch.ones(2, requires_grad=True)
    late = torch.ones(2, requires_grad=True)
    y = late * 2

    def fail(g):
        raise ValueError

    y.register_hook(fail)
    loss = (y * early).sum()
    with pytest.raises(ValueError):
        loss.backward()
    assert early.grad.tolist() == [2.0, 2.0]
    assert late.grad is None


@pytest.mark.skipif(not hasattr(signal, "setitimer") or not hasattr(os, "kill"), reason="signals")
def test_a_signal_during_backward_leaves_the_engine_usable():
    assert threading.current_thread() is threading.main_thread()
    x = torch.ones(4, dtype=torch.float64, requires_grad=True)
    before = signal.getsignal(signal.SIGALRM)

    def interrupt(number, frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    interrupted = 0
    try:
        end = time.monotonic() + 1.5
        delay = 1e-4
        while time.monotonic() < end:
            x.grad = None
            loss = chain(x, 300).sum()
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                loss.backward()
                signal.setitimer(signal.ITIMER_REAL, 0)
                whole = True
            except KeyboardInterrupt:
                interrupted += 1
                whole = False
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            delay = delay * 1.3 if delay < 2e-3 else 1e-4
            if whole:
                assert np.array_equal(x.grad.numpy(), np.ones(4))
            else:  # all of it or nothing: no part of a gradient
                assert x.grad is None or np.array_equal(x.grad.numpy(), np.ones(4))
            assert works(x)
    except KeyboardInterrupt:  # it came between the statements
        interrupted += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted
    assert works(x)
