"""Profiles of several processes: names of collectives, joined traces, charts."""

from __future__ import annotations

import functools
import gzip
import json

import pytest

from flambeau import codegen
from flambeau.viz import join_traces, overlap, plot_pipeline, plot_ranks

from .ranks import run


@functools.cache
def profiles(library):
    return run("profiles", library, 2)


@pytest.mark.parity
def test_names_are_those_of_pytorch():
    pytest.importorskip("torch")
    for ours, theirs in zip(profiles("flambeau"), profiles("torch"), strict=True):
        assert ours["names"] == theirs["names"]
        assert ours["table"] == theirs["table"]
        assert ours["info"] == theirs["info"]


def test_traces_of_ranks_are_joined(tmp_path):
    files = []
    for rank, each in reversed(list(enumerate(profiles("flambeau")))):
        files.append(tmp_path / f"{rank}.json")
        files[-1].write_text(json.dumps(each["trace"]))
    trace = join_traces(files, tmp_path / "all.json.gz")
    assert json.loads(gzip.decompress((tmp_path / "all.json.gz").read_bytes())) == trace
    rows = [(event["pid"], event["args"]["name"]) for event in trace["traceEvents"] if event["name"] == "process_name"]
    assert rows == [(0, "rank 0"), (1, "rank 1")]
    reductions = [event for event in trace["traceEvents"] if event["name"] == "gloo:all_reduce"]
    threads = {(event["pid"], event["tid"]) for event in reductions}
    assert threads == {(0, 0), (0, 1), (1, 0), (1, 1)}  # by the program's thread, and beside it
    names = {event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    assert names == {"program", "collectives"}
    # one clock: a process has not ended a reduction before the other has begun it
    ends = [[event["ts"] + event["dur"] for event in reductions if event["pid"] == rank] for rank in range(2)]
    starts = [[event["ts"] for event in reductions if event["pid"] == rank] for rank in range(2)]
    assert min(ends[0]) > min(starts[1]) - 1e3
    assert min(event["ts"] for event in trace["traceEvents"] if event["ph"] == "X") == 0
    assert set(overlap(trace)) == {0, 1}
    with pytest.raises(ValueError, match="is the second trace of rank 0"):
        join_traces([files[1], files[1]])
    (tmp_path / "none.json").write_text("{}")
    with pytest.raises(ValueError, match="is no trace: it has no `traceEvents`"):
        join_traces([tmp_path / "none.json"])


@functools.cache
def overlapping():
    return run("overlapping", "flambeau", 2)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_reductions_overlap_with_the_backward_pass(compiled):
    if compiled and not codegen.available():
        pytest.skip("compiled functions need LLVM")
    for traces in overlapping():
        # in one of the steps at least: on busy processors the thread of the collectives may wait for its turn
        assert any(overlaps(trace, compiled) for trace in traces[compiled])


def overlaps(trace, compiled):
    """Whether the first reduction began before the last piece of the backward pass."""
    spans = [(event["ts"], event["ts"] + event["dur"], event["name"], event["tid"])
             for event in trace["traceEvents"] if event["ph"] == "X"]
    nodes = sorted(span for span in spans if "evaluate_function" in span[2])
    reductions = sorted(span for span in spans if span[2] == "gloo:all_reduce")
    assert len(reductions) == 5  # a bucket a layer
    assert {span[3] for span in reductions}.isdisjoint({span[3] for span in nodes})  # in another thread
    name = "CompiledFunctionBackward" if compiled else "MmBackward0"
    parts = [span for span in nodes if span[2].endswith(name)]
    assert len(parts) == 5
    shares = list(overlap(trace).values())
    assert len(shares) == 1
    return reductions[0][0] < parts[-1][0] and shares[0] > 0  # the first layer's gradient is not yet begun


def test_the_explorer_shows_the_graph_of_a_rank():
    for rank, each in enumerate(profiles("flambeau")):
        assert f"on rank {rank} of 2</title>" in each["page"]
        assert "AddmmBackward0" in each["page"]


def test_charts():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    trace = join_traces([], None)
    events = [("aten::mm", 0, 2), ("autograd::engine::evaluate_function: MmBackward0", 2, 6), ("aten::mm", 3, 4),
              ("gloo:all_reduce", 4, 8), ("own", 0, 9)]
    trace["traceEvents"] = [{"ph": "X", "pid": rank, "tid": 0, "name": name, "ts": start * 1e3,
                             "dur": (end - start) * 1e3} for rank in (0, 1) for name, start, end in events]
    assert overlap(trace) == {0: 0.5, 1: 0.5}
    ax = plot_ranks(trace, title="A step")
    assert [text.get_text() for text in ax.get_yticklabels()] == ["rank 0", "rank 1"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["forward", "backward", "messages"]
    assert ax.get_xlim()[1] >= 8
    ax = plot_pipeline({0: [("0F0", 0., .001), ("0B0", .003, .005)], 1: [("1F0", .001, .002), ("1B0", .002, .003)]})
    assert ax.get_title(loc="left") == "50 % idle"
    assert len(ax.patches) == 4
    pyplot.close("all")
