"""Processes that share tensors: queues, pipes, pools, and errors of started processes."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time

import pytest

import flambeau as torch
import flambeau.multiprocessing as mp
from flambeau.multiprocessing import reductions
from flambeau.multiprocessing.pool import Pool
from flambeau.multiprocessing.spawn import ProcessContext

pytestmark = [pytest.mark.skipif(sys.platform == "win32", reason="POSIX"),
              pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")]

fork = mp.get_context("fork")


def add_one(received, answers):
    x = received.get()
    x += 1
    answers.put(x.sum().item())


@pytest.mark.parametrize("kind", ["Queue", "SimpleQueue", "JoinableQueue"])
def test_queues(kind):
    received, answers = getattr(fork, kind)(), getattr(fork, kind)()
    process = fork.Process(target=add_one, args=(received, answers))
    process.start()
    x = torch.zeros(3)
    view = x[1:]
    received.put(x)
    assert answers.get() == 3.0
    process.join(20)
    assert process.exitcode == 0
    assert (x.tolist(), view.tolist()) == ([1, 1, 1], [1, 1])


def test_pipes_in_both_directions():
    here, there = fork.Pipe()

    def echo():
        while True:
            x = there.recv()
            if x is None:
                return
            there.send(x.mul_(2))

    process = fork.Process(target=echo)
    process.start()
    x = torch.ones(2)
    here.send(x)
    back = here.recv()
    assert back.data_ptr() == x.data_ptr()
    assert x.tolist() == [2, 2]
    here.send(None)
    process.join(20)
    assert process.exitcode == 0


def row_sum(x):
    return x.sum(), x.is_shared()


def test_pools():
    with Pool(2, context=fork) as pool:
        results = pool.map(row_sum, torch.arange(6.0).reshape(3, 2).unbind())
    assert [(total.item(), shared) for total, shared in results] == [(1, True), (5, True), (9, True)]


def test_the_new_interpreter_gets_parameters():
    layer = torch.nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        layer.weight.fill_(2.0)
    process = mp.get_context("spawn").Process(target=torch.nn.init.zeros_, args=(layer.weight,))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert layer.weight.tolist() == [[0, 0]]


# ----- start_processes -----------------------------------------------------------------------


def run(function, count=2, **options):
    return mp.start_processes(function, nprocs=count, start_method="fork", **options)


def test_arguments():
    x = torch.zeros(3).share_memory_()
    run(lambda i, x, step: x[i].add_(step * i), 3, args=(x, 2))
    assert x.tolist() == [0, 2, 4]


def fail(i):
    if i == 1:
        raise ValueError("a reason")
    time.sleep(60)


def test_exceptions_end_the_others():
    with pytest.raises(mp.ProcessRaisedException) as caught:
        run(fail)
    assert caught.value.error_index == 1
    text = str(caught.value)
    assert text.startswith("\n\n-- Process 1 terminated with the following error:\nTraceback (most recent call")
    assert text.endswith("ValueError: a reason\n")


@pytest.mark.parametrize(("end", "code", "name", "text"), [
    (lambda i: os._exit(3), 3, None, "process 0 terminated with exit code 3"),
    (lambda i: sys.exit(4), 4, None, "process 0 terminated with exit code 4"),
    (lambda i: os.kill(os.getpid(), signal.SIGKILL), -9, "SIGKILL", "process 0 terminated with signal SIGKILL"),
])
def test_other_ends(end, code, name, text):
    with pytest.raises(mp.ProcessExitedException) as caught:
        run(end, 1)
    error = caught.value
    assert (str(error), error.exit_code, error.signal_name) == (text, code, name)
    call, arguments = error.__reduce__()
    assert str(call(*arguments)) == text


def test_interrupts_are_no_errors():
    def interrupted(i):
        raise KeyboardInterrupt

    assert run(interrupted, 1) is None


def test_join_with_a_timeout():
    context = run(lambda i: time.sleep(60), 2, join=False)
    assert isinstance(context, ProcessContext)
    assert len(context.pids()) == 2
    assert context.join(timeout=0.01) is False
    os.kill(context.pids()[0], signal.SIGTERM)
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with signal SIGTERM"):
        context.join(grace_period=0.05)
    assert not any(process.is_alive() for process in context.processes)


def test_processes_that_ignore_sigterm_are_killed():
    def stubborn(i):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if i == 0:
            time.sleep(0.1)
            os._exit(2)
        time.sleep(60)

    context = run(stubborn, 2, join=False)
    time.sleep(0.3)
    with pytest.raises(mp.ProcessExitedException, match="exit code 2"):
        context.join(grace_period=0.1)
    assert context.processes[1].exitcode == -signal.SIGKILL


def test_deprecated_names():
    with pytest.warns(UserWarning, match="SpawnContext is renamed to ProcessContext since 1.4 release."):
        mp.SpawnContext([], [])
    with pytest.warns(FutureWarning, match="This method only supports start_method=spawn"):
        mp.spawn(print, nprocs=0, start_method="fork")


def test_references_to_memory_are_found_by_their_number():
    x = torch.ones(2)
    reference = reductions.StorageWeakRef(x.untyped_storage())
    again = reductions.StorageWeakRef.from_weakref(reference.cdata)
    assert again == reference
    assert not again.expired()
    assert reductions.StorageWeakRef.from_weakref(-1).expired()
    del x
    gc.collect()
    assert again.expired()
