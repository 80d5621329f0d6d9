"""Workers that fail, die, hang or are abandoned: the loader raises, and no process stays."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import flambeau as torch
from flambeau.runtime import shared_memory, thread_pool
from flambeau.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

pytestmark = [pytest.mark.skipif(sys.platform == "win32", reason="POSIX"),
              pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")]


class Calls(Dataset):
    """Calls a function for each sample."""

    def __init__(self, function, length=8):
        self.function, self.length = function, length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return self.function(index)


def all_ended(processes, seconds=20) -> bool:
    for process in processes:
        process.join(seconds)
    return not any(process.is_alive() for process in processes)


def test_an_exception_has_the_workers_traceback():
    def function(i):
        raise ZeroDivisionError("in the dataset")

    with pytest.raises(ZeroDivisionError) as caught:
        next(iter(DataLoader(Calls(function), num_workers=1)))
    text = str(caught.value)
    assert text.startswith("Caught ZeroDivisionError in DataLoader worker process 0.\nOriginal Traceback (most recent")
    assert "in function\n    raise ZeroDivisionError" in text
    assert text.endswith("ZeroDivisionError: in the dataset\n")


@pytest.mark.parametrize("readable", [False, True])
def test_batches_of_several_epochs_with_and_without_access_to_descriptors(monkeypatch, readable):
    monkeypatch.setattr(shared_memory, "has_readable_descriptors", lambda pid: readable)
    loader = DataLoader(Calls(lambda i: torch.full((3,), i)), 2, num_workers=2, persistent_workers=True)
    epochs = [list(loader), list(loader)]
    next(iter(loader))  # its other batches are dropped
    epochs.append(list(loader))
    for batches in epochs:
        assert torch.cat(batches)[:, 0].tolist() == list(range(8))
        assert all(batch.is_shared() for batch in batches)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_killed_worker(number):
    def function(i):
        if i == 2:
            if number != signal.SIGKILL:
                signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            time.sleep(20)
        return i

    iterator = iter(DataLoader(Calls(function), num_workers=1))
    workers = iterator._workers
    with pytest.raises(RuntimeError) as caught:
        for _ in iterator:
            pass
    texts = []
    error = caught.value
    while error is not None:
        texts.append(str(error))
        error = error.__cause__
    pid = workers[0].pid
    assert any(text.startswith(f"DataLoader worker (pid {pid}) is killed by signal: {signal.strsignal(number)}. ")
               or text == f"DataLoader worker (pid(s) {pid}) exited unexpectedly" for text in texts), texts
    del iterator
    assert all_ended(workers)


def test_a_worker_that_exits():
    def function(i):
        os._exit(7)

    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid.*exited unexpectedly"):
        next(iter(DataLoader(Calls(function), num_workers=1)))


def test_a_worker_that_hangs():
    iterator = iter(DataLoader(Calls(lambda i: time.sleep(60)), num_workers=2, timeout=0.2))
    workers = iterator._workers
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.2 seconds"):
        next(iterator)
    for worker in workers:  # before the loader waits for them
        worker.terminate()
    del iterator
    gc.collect()
    assert all_ended(workers)


@pytest.mark.parametrize("persistent", [False, True])
def test_abandoned_iterators_end_their_workers(persistent):
    loader = DataLoader(Calls(lambda i: i, 100), num_workers=2, persistent_workers=persistent)
    iterator = iter(loader)
    next(iterator)
    workers = iterator._workers
    del iterator, loader
    gc.collect()
    assert all_ended(workers)
    assert [worker.exitcode for worker in workers] == [0, 0]


def test_exhausted_iterators_end_their_workers():
    iterator = iter(DataLoader(Calls(lambda i: i, 3), num_workers=2))
    assert [batch.item() for batch in iterator] == [0, 1, 2]
    assert all_ended(iterator._workers)
    assert list(iterator) == []


def test_persistent_workers_are_kept():
    loader = DataLoader(Calls(lambda i: os.getpid(), 4), num_workers=2, persistent_workers=True)
    first = {batch.item() for batch in loader}
    assert first == {batch.item() for batch in loader} == {worker.pid for worker in loader._iterator._workers}
    loader._iterator._shutdown_workers()


def test_streams_end_worker_by_worker():
    class Uneven(IterableDataset):
        def __iter__(self):
            return iter(range((1, 5)[get_worker_info().id]))

    iterator = iter(DataLoader(Uneven(), batch_size=None, num_workers=2))
    assert sorted(iterator) == [0, 0, 1, 2, 3, 4]
    assert all_ended(iterator._workers)


def test_a_forked_process_leaves_the_workers_alone():
    iterator = iter(DataLoader(Calls(lambda i: i), num_workers=1))
    pid = os.fork()
    if pid == 0:
        iterator.__del__()
        os._exit(0)
    os.waitpid(pid, 0)
    assert [batch.item() for batch in iterator] == list(range(8))


def test_tensors_outlive_the_workers():
    batches = list(DataLoader(Calls(lambda i: torch.full((3,), i)), batch_size=2, num_workers=2))
    assert [batch[:, 0].tolist() for batch in batches] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert all(batch.is_shared() for batch in batches)


def test_workers_compute_with_one_thread():
    x = torch.rand(400_000)
    expected = (x * 2 + 1).sum().item()  # the pool's threads exist before the fork
    before = torch.get_num_threads()

    def function(i):
        torch.exp(x)
        return torch.get_num_threads(), (x * 2 + 1).sum().item(), threading.active_count()

    torch.set_num_threads(2)
    try:
        thread_pool.pool()
        (threads, result, _), = DataLoader(Calls(function, 1), batch_size=None, num_workers=1, timeout=60)
        assert threads == 1
        assert result == pytest.approx(expected, rel=1e-6)
        assert torch.get_num_threads() == 2
        torch.set_num_threads(1)
        (_, result, _), = DataLoader(Calls(function, 1), batch_size=None, num_workers=1, timeout=60)
        assert result == pytest.approx(expected, rel=1e-6)
    finally:
        torch.set_num_threads(before)


PROGRAM = """
import os, signal, sys, threading, time
import flambeau as torch

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, i):
        time.sleep(0.01)
        return i

def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # where the tests run in the background, it is ignored
    iterator = iter(torch.utils.data.DataLoader(Data(), num_workers=2, persistent_workers=True))
    print(*(worker.pid for worker in iterator._workers), flush=True)
    next(iterator)
    END
    for _ in iterator:
        pass

main()
"""
ENDS = {"interrupt": "threading.Timer(0.1, lambda: os.killpg(0, signal.SIGINT)).start()", "exit": "sys.exit(0)",
        "kill": "os.kill(os.getpid(), signal.SIGKILL)"}


def exists(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_no_worker_outlives_the_program():
    with contextlib.ExitStack() as processes:
        running = {end: processes.enter_context(subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(PROGRAM).replace("END", code)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True))
            for end, code in ENDS.items()}
        for end, process in running.items():
            output, errors = process.communicate(timeout=120)
            expected = {"interrupt": -signal.SIGINT, "exit": 0, "kill": -signal.SIGKILL}[end]
            assert process.returncode == expected, (end, errors)
            assert errors == "" or end == "interrupt"
            workers = [int(pid) for pid in output.split()]
            assert len(workers) == 2, errors
            deadline = time.monotonic() + 15  # workers look for their parent when nothing arrives for 5 seconds
            while any(map(exists, workers)) and time.monotonic() < deadline:
                time.sleep(0.05)
            assert not any(map(exists, workers)), end


ORPHAN = """
import multiprocessing, os, signal, time
from flambeau.utils.data._utils.worker import ManagerWatchdog

def wait(pid):
    while os.getppid() == pid:
        time.sleep(0.01)
    print(ManagerWatchdog().is_alive(), flush=True)

multiprocessing.get_context("fork").Process(target=wait, args=(os.getpid(),)).start()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="starts workers by fork")
def test_a_worker_whose_parent_ended_before_it_began_notices():
    done = subprocess.run([sys.executable, "-c", ORPHAN], capture_output=True, text=True, timeout=120)
    assert done.stdout == "False\n", done.stderr


OPEN_FILES = """
import resource
import flambeau as torch

class Endless(torch.utils.data.IterableDataset):
    def __iter__(self):
        while True:
            yield torch.ones(2)

resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
kept = []
try:
    for batch in torch.utils.data.DataLoader(Endless(), num_workers=1, multiprocessing_context="fork"):
        kept.append(batch)
except RuntimeError as error:
    print(len(kept) > 50, "ulimit -n" in str(error))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sends descriptors")
def test_the_limit_of_open_files_is_named():
    done = subprocess.run([sys.executable, "-c", OPEN_FILES], capture_output=True, text=True, timeout=120)
    assert done.stdout == "True True\n", done.stderr
