"""Timers of `torch.distributed.elastic.timer`: late processes are ended, others are not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from multiprocessing import get_context

import pytest

from flambeau.distributed.elastic import timer
from flambeau.distributed.elastic.timer import api


def sleeper():
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])


def wait_until(condition):
    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_late_processes_are_ended():
    queue = get_context("fork").Queue()
    server = timer.LocalTimerServer(queue, max_interval=0.01)
    late, stopped, early = sleeper(), sleeper(), sleeper()
    try:
        now = time.time()
        for process, end in ((late, now - 1), (stopped, now - 1), (stopped, -1), (early, now + 60)):
            queue.put(timer.TimerRequest(process.pid, "block", end))
        server._run_watchdog()  # a queue of processes hands over what was put a little later
        wait_until(lambda: server._run_watchdog() or late.poll() is not None)
        assert late.returncode == -signal.SIGKILL
        assert early.poll() is None
        assert list(server._timers) == [(early.pid, "block")]
    finally:
        for process in (late, stopped, early):
            process.kill()
            process.wait()


def test_server_runs_beside_its_process():
    queue = get_context("fork").Queue()
    server = timer.LocalTimerServer(queue, max_interval=0.01)
    server.start()
    process = sleeper()
    try:
        queue.put(timer.TimerRequest(process.pid, "block", time.time()))
        assert process.wait(10) == -signal.SIGKILL
    finally:
        server.stop()
        process.kill()
        process.wait()


class Recorder(timer.TimerClient):
    def __init__(self):
        self.calls = []

    def acquire(self, scope_id, expiration_time):
        self.calls.append(("acquire", scope_id, expiration_time))

    def release(self, scope_id):
        self.calls.append(("release", scope_id))


def test_blocks_start_and_stop_timers(monkeypatch):
    monkeypatch.setattr(api, "_client", None)
    with pytest.raises(RuntimeError, match="Configure timer client before using countdown timers"), timer.expires(1):
        pass
    client = Recorder()
    timer.configure(client)
    with pytest.raises(KeyError), timer.expires(after=5):
        raise KeyError
    (_, scope, end), release = client.calls
    assert scope.startswith(f"{__file__}#")
    assert release == ("release", scope)
    assert 0 < end - time.time() <= 5


def test_errors_of_ending_remove_timers():
    class Failing(timer.LocalTimerServer):
        def _reap_worker(self, worker_id):
            raise OSError("no")

    server = Failing(get_context("fork").Queue(), 0.01)
    server.register_timers([timer.TimerRequest(1, "block", 0)])
    server._run_watchdog()
    assert not server._timers


def test_requests_through_a_pipe(tmp_path):
    path, events = str(tmp_path / "pipe"), []
    server = timer.FileTimerServer(path, "job", max_interval=0.01, log_event=lambda *event: events.append(event))
    server._reap_worker = lambda pid, number: events.append((pid, number)) or True
    client = timer.FileTimerClient(path, signal=signal.SIGTERM)
    server.start()
    client.acquire("late", time.time() - 1)
    client.acquire("early", time.time() + 60)
    wait_until(lambda: (os.getpid(), signal.SIGTERM) in events)
    server.run_once()
    assert server._request_count == 2
    assert events.count((os.getpid(), signal.SIGTERM)) == 2  # the worker, which is also the server's process
    assert [name for name, *_ in events if isinstance(name, str)] == [
        "watchdog started", "timer expired", "kill worker process"]
    assert not os.path.exists(path)


def test_client_without_a_server(tmp_path, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    client = timer.FileTimerClient(str(tmp_path / "none"))
    with pytest.raises(BrokenPipeError, match="because FileTimerServer is not available"):
        client.acquire("block", 1)
