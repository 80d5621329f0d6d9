"""`torch.futures` compared with PyTorch: results, errors of callbacks, and what cannot be done with a future."""

from __future__ import annotations

import copy
import pickle

import flambeau
from tests.autograd.differential import attempt, same


def _completed(torch, value=None, error=None):
    future = torch.futures.Future()
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)
    return future


def _first_line(text):
    return text.partition("\n")[0] if isinstance(text, str) else text


def _raise(future):
    raise ValueError("Expected error")


def test_errors():
    def program(torch):
        futures, error = torch.futures, ValueError("V")
        done = _completed(torch, 1)
        failed = _completed(torch, 1).then(_raise)
        steps = [
            lambda: done.set_result(2), lambda: done.set_exception(error),
            lambda: _completed(torch, error=error).set_result(1),
            lambda: pickle.dumps(futures.Future()), lambda: copy.copy(futures.Future()),
            lambda: copy.deepcopy(futures.Future()), lambda: futures.Future().set_exception("text"),
            lambda: _completed(torch, error=error).wait(), lambda: _completed(torch, error=error).value(),
            lambda: _completed(torch, error=error).then(lambda f: f.value()).wait(),
            failed.wait, failed.value, lambda: failed.then(lambda f: f.wait()).wait(),
            lambda: failed.then(lambda f: 3).wait(), lambda: done.then(lambda: 1).wait(), failed.done,
            lambda: futures.collect_all([failed, done]).wait(), lambda: futures.wait_all([failed, done]),
            lambda: futures.wait_all([_completed(torch, error=error)]), lambda: futures.wait_all([done, done]),
            lambda: futures.wait_all([None]), lambda: futures.collect_all((done, None)), lambda: torch.jit.wait(None),
            lambda: futures.Future(devices=["cpu"]), lambda: futures.Future(devices=[torch.device("meta")]),
        ]
        return [_first_line(attempt(step)) for step in steps]

    same(program)


def test_errors_of_done_callbacks_go_no_further(capsys):
    future = flambeau.futures.Future()
    future.add_done_callback(_raise)
    future.set_result(3)
    assert future.wait() == 3
    assert "Got the following error when running the callback: ValueError: Expected error" in capsys.readouterr().err


def test_order_of_callbacks():
    def program(torch):
        future, seen = torch.futures.Future(), []
        future.add_done_callback(lambda f: seen.append(1))
        following = future.then(lambda f: seen.append(2))
        future.add_done_callback(lambda f: seen.append(3))
        future.set_result(None)
        return seen, following.wait()

    same(program)
