"""Traces of several processes in one file, a row for each process."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_PathLike = str | os.PathLike[str]


def read_trace(path: _PathLike) -> dict[str, Any]:
    """A trace that `export_chrome_trace` wrote, compressed or not.

    Raises:
        ValueError: the file has no events.
    """
    data = Path(path).read_bytes()
    trace = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    if not isinstance(trace, dict) or "traceEvents" not in trace:
        raise ValueError(f"{os.fspath(path)} is no trace: it has no `traceEvents`; write one with "
                         "`prof.export_chrome_trace(path)`")
    return trace


def join_traces(paths: Sequence[_PathLike], path: _PathLike | None = None) -> dict[str, Any]:
    """Join the traces of processes: `chrome://tracing` and Perfetto show a row for each rank.

    The clocks of machines are compared by their time of day. Ranks come from `distributedInfo`, or the order of files.

    Args:
        paths: the files that the processes wrote.
        path: a file for the result; none if None.

    Returns:
        The trace; the processes' numbers are their ranks, and times count from the first event.

    Raises:
        ValueError: a file has no events, or two are of the same rank.

    >>> import os, tempfile
    >>> import flambeau as torch
    >>> from flambeau.viz import join_traces
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with torch.profiler.profile() as prof:
    ...         _ = torch.ones(2) + 1
    ...     prof.export_chrome_trace(f"{folder}/0.json")
    ...     trace = join_traces([f"{folder}/0.json"])
    >>> [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"]
    ['rank 0']
    """
    traces: dict[int, dict[str, Any]] = {}
    for number, file in enumerate(paths):
        trace = read_trace(file)
        rank = int(trace.get("distributedInfo", {}).get("rank", number))
        if rank in traces:
            raise ValueError(f"{os.fspath(file)} is the second trace of rank {rank}")
        traces[rank] = trace
    offsets = {rank: trace.get("baseTimeNanoseconds", 0) / 1e3 for rank, trace in traces.items()}
    starts = [event["ts"] + offsets[rank] for rank, trace in traces.items() for event in trace["traceEvents"]
              if event["ph"] == "X"]
    first = min(starts, default=0.0)
    events: list[dict[str, Any]] = []
    for rank, trace in sorted(traces.items()):
        threads: dict[Any, int] = {}
        events.append({"ph": "M", "name": "process_name", "pid": rank, "tid": 0, "args": {"name": f"rank {rank}"}})
        events.append({"ph": "M", "name": "process_sort_index", "pid": rank, "tid": 0, "args": {"sort_index": rank}})
        for event in trace["traceEvents"]:
            if event["ph"] == "M" or not isinstance(event.get("tid"), int):
                continue
            thread = threads.setdefault(event["tid"], len(threads))
            moved = {**event, "pid": rank, "tid": thread, "ts": event["ts"] + offsets[rank] - first}
            if "id" in event:  # arrows stay within a process
                moved["id"] = f"{rank}:{event['id']}"
            events.append(moved)
        for thread in threads.values():
            name = "program" if thread == 0 else f"collectives {thread}" if len(threads) > 2 else "collectives"
            events.append({"ph": "M", "name": "thread_name", "pid": rank, "tid": thread, "args": {"name": name}})
    joined = {"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": events,
              "distributedInfo": {"world_size": len(traces)}}
    if path is not None:
        text = json.dumps(joined)
        Path(path).write_bytes(gzip.compress(text.encode()) if os.fspath(path).endswith(".gz") else text.encode())
    return joined


__all__ = ["join_traces", "read_trace"]
