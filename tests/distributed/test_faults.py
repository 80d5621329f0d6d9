"""A process that is killed, one that is slow, a network that is full: errors of the others name it, in time."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from .ranks import ROOT

GONE = "Connection closed by peer: rank {} has left the process group, or its process has ended"
LATE = "[gloo] Timed out waiting 1500ms for recv operation to complete: nothing came from rank {}"


def reports(kind, fault, sockets, folder):
    """What ranks 0 and 2 report when rank 1 fails."""
    code = (f"import sys; sys.path.insert(0, {str(ROOT)!r}); import tests.distributed.programs.faults as faults; "
            f"faults.fork({kind!r}, {fault!r}, '{sockets}', {str(folder)!r})")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120,
                          check=True)
    assert not done.stderr, done.stderr
    return [pickle.loads((folder / str(rank)).read_bytes()) for rank in (0, 2)]


@pytest.mark.parametrize(("kind", "sockets"), [("small", False), ("large", False), ("DDP", False), ("pipeline", True)])
def test_a_process_that_is_killed_is_named(kind, sockets, tmp_path):
    for error, text, seconds in reports(kind, "killed", sockets, tmp_path):
        assert error == "RuntimeError"
        assert GONE.format(1) in text
        assert seconds < 60  # long before a timeout of minutes would have ended


@pytest.mark.parametrize(("kind", "sockets"), [("large", False), ("pipeline", True)])
def test_a_process_that_is_slow_is_named(kind, sockets, tmp_path):
    for error, text, seconds in reports(kind, "slow", sockets, tmp_path):
        assert error == "RuntimeError"
        assert LATE.format(1) in text
        assert seconds >= 1.5


@pytest.mark.parametrize("fault", ["killed", "slow"])
def test_in_a_ring_the_first_cause_is_named(fault, tmp_path):
    text = GONE if fault == "killed" else LATE
    (_, first, _), (_, last, _) = reports("large", fault, True, tmp_path)
    assert last == text.format(1)  # rank 2 waits for rank 1, and rank 0 for rank 2
    assert first in (text.format(1), f"{text.format(2)} (rank 2 waits for rank 1: look at rank 1 first)")


def test_a_full_network_is_a_timeout(tmp_path):
    (_, first, _), (_, last, _) = reports("large", "full", True, tmp_path)  # rank 1 sends 40 kB a second
    assert last.startswith("[gloo] Timed out waiting 1500ms")
    assert "rank 1" in first
    assert "rank 1" in last
