"""Processes of launchers: results, failures, output; events, metrics, rendezvous, options from the environment."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from pathlib import Path

import pytest

from flambeau.distributed.argparse_util import check_env, env
from flambeau.distributed.elastic import events, metrics, rendezvous
from flambeau.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std, start_processes
from flambeau.distributed.elastic.multiprocessing.errors import ChildFailedError, ErrorHandler, ProcessFailure, record
from flambeau.distributed.elastic.multiprocessing.redirects import redirect
from flambeau.distributed.elastic.multiprocessing.tail_log import TailLog
from flambeau.distributed.elastic.rendezvous.registry import get_rendezvous_handler
from flambeau.distributed.elastic.rendezvous.static_tcp_rendezvous import create_rdzv_handler
from flambeau.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint
from flambeau.distributed.elastic.utils.distributed import get_free_port


def said(text, fails):
    print(f"{text} {os.environ['NUMBER']}", flush=True)
    if fails:
        raise ValueError("not this one")
    return int(os.environ["NUMBER"])


def numbered(count):
    return {rank: {"NUMBER": str(rank)} for rank in range(count)}


@pytest.mark.parametrize("fails", [False, True])
def test_functions(fails, tmp_path):
    context = start_processes("said", said, {0: ("out", False), 1: ("out", fails)}, numbered(2),
                              DefaultLogsSpecs(str(tmp_path), Std.ALL), start_method="fork")
    result = context.wait(period=0.01)
    assert result.is_failed() == fails
    if fails:
        failure = result.failures[1]
        assert (failure.exitcode, failure.message["message"]) == (1, "ValueError: not this one")
    else:
        assert result.return_values == {0: 0, 1: 1}
        assert [Path(result.stdouts[rank]).read_text() for rank in range(2)] == ["out 0\n", "out 1\n"]


def test_programs(tmp_path):
    context = start_processes("sh", "sh", {0: ("-c", "echo out; sleep 60"), 1: ("-c", "exit $NUMBER")}, numbered(2),
                              DefaultLogsSpecs(str(tmp_path), Std.OUT))
    pids = context.pids()
    result = context.wait(period=0.01)
    assert {rank: each.exitcode for rank, each in result.failures.items()} == {0: -15, 1: 1}
    for pid in pids.values():
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_mappings_are_of_the_same_processes(tmp_path):
    with pytest.raises(RuntimeError, match=r"envs, local rank mapping mismatch, expected: \{0, 1\}, actual: \{0\}"):
        start_processes("f", said, {0: (), 1: ()}, {0: {}}, DefaultLogsSpecs(str(tmp_path)))
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="is a file"):
        DefaultLogsSpecs(str(tmp_path / "file"))


def test_chosen_lines_go_to_a_file_of_all(tmp_path, capfd):
    context = start_processes("sh", "sh", {0: ("-c", "echo loss 1; echo noise"), 1: ("-c", "echo loss 2")}, numbered(2),
                              DefaultLogsSpecs(str(tmp_path), tee=Std.OUT), duplicate_stdout_filters=["loss"])
    while context.wait(period=0.01) is None:
        pass
    found = next(tmp_path.rglob("filtered_stdout.log")).read_text().splitlines()
    assert sorted(found) == ["[sh0]:loss 1", "[sh1]:loss 2"]


def test_lines_are_passed_on_as_they_come(tmp_path):
    out = io.StringIO()
    log = TailLog("trainer", {0: str(tmp_path / "0.log")}, out, {0: "first: "}, interval_sec=0.001).start()
    with open(tmp_path / "0.log", "w") as file:
        for number in range(3):
            print(number, file=file, flush=True)
            time.sleep(0.002)
    log.stop()
    assert out.getvalue() == "first: 0\nfirst: 1\nfirst: 2\n"
    assert log.stopped()


def test_output_of_other_processes_is_redirected(tmp_path, capfd):
    with capfd.disabled():
        if not hasattr(sys.stdout, "fileno"):
            pytest.skip("no descriptor")
        with redirect("stdout", str(tmp_path / "out")):
            os.system("echo from a shell")
            print("from Python")
    assert sorted((tmp_path / "out").read_text().splitlines()) == ["from Python", "from a shell"]
    with pytest.raises(ValueError, match="unknown standard stream <stdin>"), redirect("stdin", ""):
        pass


def test_errors_of_children_are_those_of_the_parent(tmp_path, monkeypatch):
    child, own = tmp_path / "child.json", tmp_path / "own.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(child))
    ErrorHandler().record_exception(ValueError("of the child"))
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(own))

    @record
    def main():
        raise ChildFailedError("train", {1: ProcessFailure(0, 3, 7, str(child))})

    with pytest.raises(ChildFailedError, match=r"traceback : NoneType: None"):
        main()
    assert json.loads(own.read_text())["message"]["errorCode"] == 7


class Numbers(metrics.MetricHandler):
    def __init__(self):
        self.names = []

    def emit(self, metric_data):
        self.names.append((metric_data.group_name, metric_data.name))


def test_metrics_of_calls():
    handler = Numbers()
    metrics.configure(handler, "steps")

    @metrics.prof(group="steps")
    def wrong():
        raise ValueError("reason")

    with pytest.raises(ValueError, match="reason"):
        wrong()
    assert [name.rpartition("wrong.")[2] for _, name in handler.names] == ["failure", "duration.ms"]
    with pytest.warns(FutureWarning, match="use `@prof`"):
        assert metrics.profile("steps")(abs)(-1) == 1


def test_events_are_json():
    event = events.RdzvEvent("join", "job", "", "host", 1, events.NodeState.FAILED, rank=2)
    assert events.RdzvEvent.deserialize(event.serialize()) == event


def test_options_from_the_environment(monkeypatch):
    import argparse

    monkeypatch.setenv("PET_NAME", "given")
    monkeypatch.setenv("PET_LOUD", "1")
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", action=env, required=True)
    parser.add_argument("--loud", action=check_env)
    assert vars(parser.parse_args([])) == {"name": "given", "loud": True}
    assert parser.parse_args(["--name", "other"]).name == "other"


def test_parameters_and_handlers_of_rendezvous():
    parameters = rendezvous.RendezvousParameters("own", "", "job", 1, 2, rank=1, fast="yes", wrong="maybe")
    assert (parameters.get_as_bool("fast"), parameters.get_as_int("rank"), parameters.get("none", 3)) == (True, 1, 3)
    with pytest.raises(ValueError, match="option 'wrong' does not represent a valid boolean value"):
        parameters.get_as_bool("wrong")
    with pytest.raises(ValueError, match="'own' is not registered"):
        get_rendezvous_handler(parameters)
    with pytest.raises(ValueError, match=r"maximum number of rendezvous nodes \(1\)"):
        rendezvous.RendezvousParameters("static", "", "job", 2, 1)
    registry = rendezvous.RendezvousHandlerRegistry()
    registry.register("own", create_rdzv_handler)
    static = rendezvous.RendezvousParameters("own", "localhost:1", "job", 1, 1, rank=0)
    with pytest.raises(RuntimeError, match="backend 'static' does not match the requested backend 'own'"):
        registry.create_handler(static)


@pytest.mark.parametrize(("endpoint", "expected"), [
    (None, ("localhost", 7)), ("host", ("host", 7)), ("host:1", ("host", 1)), ("[::1]", ("::1", 7)),
    ("host:99999", "must be an integer"), ("a b:1", "must be a dot-separated list")])
def test_endpoints(endpoint, expected):
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected):
            parse_rendezvous_endpoint(endpoint, 7)
    else:
        assert parse_rendezvous_endpoint(endpoint, 7) == expected


def test_machines_that_know_their_numbers_meet():
    port = get_free_port()
    handler = get_rendezvous_handler(rendezvous.RendezvousParameters("static", f"localhost:{port}", "job", 1, 1,
                                                                     rank=0))
    info = handler.next_rendezvous()
    info.store.set("key", "value")
    assert handler.next_rendezvous().store.get("key") == b"value"
    assert (info.rank, info.world_size, info.bootstrap_store_info.master_port) == (0, 1, port)
