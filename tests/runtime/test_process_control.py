"""Names of threads, handlers of workers, and their supervision."""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
import time

import pytest

from flambeau.runtime import process_control

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux")


def worker(run) -> tuple[int, int]:
    """A forked process with the handlers in which `run` is called, and the pipe of its standard error."""
    reader, writer = os.pipe()
    ready, set_ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        faulthandler.disable()
        os.dup2(writer, 2)
        process_control.set_worker_signal_handlers()
        os.write(set_ready, b"1")
        run()
        time.sleep(60)
        os._exit(1)
    os.close(writer)
    os.read(ready, 1)
    return pid, reader


def ended(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_thread_names():
    before = process_control.get_thread_name()
    process_control.set_thread_name("a name of more than 15 bytes")
    assert process_control.get_thread_name() == "a name of more "
    process_control.set_thread_name(before)


@pytest.mark.parametrize(("name", "text"), [
    ("SIGSEGV", "Unexpected segmentation fault"), ("SIGBUS", "Unexpected bus error"),
    ("SIGFPE", "Unexpected floating-point exception")])
def test_fatal_signals_are_reported(name, text):
    number = getattr(signal, name)
    pid, errors = worker(lambda: os.kill(os.getpid(), number))
    assert ended(pid) == -number
    with open(errors) as file:
        assert file.read().startswith(f"ERROR: {text} encountered in worker.")


def test_sigterm_of_the_parent_is_a_regular_end():
    pid, _ = worker(lambda: None)
    os.kill(pid, signal.SIGTERM)
    assert ended(pid) == 0


def test_sigterm_of_another_process_kills():
    pid, _ = worker(lambda: None)
    subprocess.run(["kill", str(pid)], check=True)
    assert ended(pid) == -signal.SIGTERM


def ended_child(run) -> int:
    """A child that has ended and is not reaped."""
    pid = os.fork()
    if pid == 0:
        run()
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return pid


def killed_by(number: int) -> None:
    faulthandler.disable()
    signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
    os.kill(os.getpid(), number)


EXITED = ("exited unexpectedly with exit code 3. Details are lost due to multiprocessing. Rerunning with num_workers=0 "
          "may give better error trace.")
NO_MEMORY = ("is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. "
             "Please try to raise your shared memory limit.")


@pytest.mark.parametrize(("end", "text"), [
    (lambda: None, None), (lambda: os._exit(3), EXITED),
    (lambda: killed_by(signal.SIGKILL), "is killed by signal: Killed. "),
    (lambda: killed_by(signal.SIGBUS), NO_MEMORY),
], ids=["regularly", "exit code", "SIGKILL", "SIGBUS"])
def test_ended_workers(end, text):
    pid = ended_child(end)
    process_control.supervise(1, (pid,))
    try:
        if text is None:
            process_control.raise_if_any_worker_failed()
        else:
            with pytest.raises(RuntimeError) as caught:
                process_control.raise_if_any_worker_failed()
            assert str(caught.value) == f"DataLoader worker (pid {pid}) {text}"
            process_control.raise_if_any_worker_failed()  # once is enough
        with pytest.raises(ValueError, match="_set_worker_pids should be called only once for each"):
            process_control.supervise(1, (pid,))
    finally:
        os.waitpid(pid, 0)
        process_control.release(1)
    with pytest.raises(ValueError, match="Cannot find worker information for _BaseDataLoaderIter with id 1"):
        process_control.release(1)


def test_running_and_reaped_workers_are_no_errors():
    pid = os.fork()
    if pid == 0:
        time.sleep(20)
        os._exit(1)
    process_control.supervise(2, (pid,))
    try:
        assert process_control.raise_if_any_worker_failed() is None
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert process_control.raise_if_any_worker_failed() is None
    finally:
        process_control.release(2)
