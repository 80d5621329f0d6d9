"""State of the system and of threads that functions read: files, clocks, locks, attributes of `threading.local`."""

from __future__ import annotations

import datetime
import os
import threading
import time
from typing import Any

import pytest

import flambeau as torch
from flambeau import codegen
from tests.compiler.eager_comparison import numbers, programs, same

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


def reads(folder):
    """Functions that read something of the system, and what changes it, by name."""
    path, lock, event = os.path.join(folder, "file"), threading.Lock(), threading.Event()

    class Meta(type):
        k = 2.0

    class Made(metaclass=Meta):
        pass

    def create():
        with open(path, "w"):
            pass

    return {
        "a file": (lambda x: x * (2 if os.path.exists(path) else 3), create),
        "a folder": (lambda x: x * (1 + len(os.listdir(folder))), create),
        "the time": (lambda x: x + datetime.datetime.now().microsecond // 10 ** 6, lambda: None),
        "a lock": (lambda x: x * (2 if lock.locked() else 3), lock.acquire),
        "an event": (lambda x: x * (2 if event.is_set() else 3), event.set),
        "an attribute of a metaclass": (lambda x: x * Made.k, lambda: setattr(Meta, "k", 5.0)),
    }


@pytest.mark.parametrize("name", reads(""))
def test_what_changes_between_calls(name, tmp_path):
    function, change = reads(str(tmp_path))[name]
    made = torch.compile(function)
    for i in range(10):
        if i == 5:
            change()
        x = numbers(3, seed=i)
        same(made(x), function(x))


def test_a_clock():
    limit = time.monotonic() + 1.5
    made = torch.compile(lambda x: x * (2 if time.monotonic() > limit else 3))
    for _ in range(5):
        made(torch.ones(3))
    time.sleep(max(0.0, limit - time.monotonic()) + 0.01)
    assert made(torch.ones(3)).tolist() == [2.0] * 3


@pytest.mark.parametrize("ask", [threading.get_ident, lambda: threading.current_thread().name], ids=["number", "name"])
def test_the_thread_of_a_call(ask):
    first = ask()
    assert_same_in_threads(lambda x: x * (2 if ask() == first else 3), lambda: None)


def test_attributes_of_a_thread():
    local = threading.local()
    local.k = 2.0
    made = assert_same_in_threads(lambda x: x * getattr(local, "k", 3.0) + hasattr(local, "late"),
                                  lambda: setattr(local, "k", 5.0), lambda: setattr(local, "late", 1))
    assert programs(made) > 1


def test_attributes_that_a_thread_assigns():
    class Counted(threading.local):
        scale = 3.0

        def __init__(self) -> None:
            self.n = 0

    def make():
        local = Counted()

        def f(x):
            local.n += 1
            return x * local.n * local.scale

        return f

    function, compiled = make(), torch.compile(make())
    found: list[Any] = []
    expected: list[Any] = []
    for target, results in ((compiled, found), (function, expected)):
        for _ in range(3):
            run = threading.Thread(target=lambda f=target, to=results: to.extend(f(torch.ones(2)) for _ in range(6)))
            run.start()
            run.join()
    same(found, expected)


def test_a_lock_excludes_other_threads():
    lock, total = threading.Lock(), torch.zeros(3)

    def f(x):
        with lock:
            total.add_(x)
            return total * 2

    made = torch.compile(f)
    for _ in range(4):
        made(torch.ones(3))
    lock.acquire()
    late = threading.Thread(target=made, args=(torch.ones(3),))
    late.start()
    late.join(0.2)
    assert late.is_alive()
    assert total.tolist() == [4.0] * 3
    lock.release()
    late.join()
    assert total.tolist() == [5.0] * 3


def assert_same_in_threads(function, *changes):
    """Call a compiled function in this thread and others, before and after changes; it is what the function is."""
    made = torch.compile(function)
    pairs: list[tuple[Any, Any]] = []

    def calls():
        for i in range(4):
            x = numbers(3, seed=i)
            pairs.append((made(x), function(x)))

    def other(change):
        calls()
        change()
        calls()

    calls()
    for change in changes:
        run = threading.Thread(target=other, args=(change,))
        run.start()
        run.join()
        calls()
    for found, expected in pairs:
        same(found, expected)
    assert len(pairs) == 4 + 12 * len(changes)
    return made
