"""A row of the table: processes of the columns, mismatches and crashes."""

from __future__ import annotations

import pickle

import pytest

import flambeau
from benchmarks import row
from benchmarks.peers import COMPILED, EAGER, available
from benchmarks.reference import Reference
from benchmarks.turns import PeerProcess
from benchmarks.workloads import ROWS


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Of the workload that is the quickest to start."""
    file = tmp_path_factory.mktemp("row") / "reference"
    file.write_bytes(pickle.dumps(Reference(flambeau, ROWS["formula"], "", ROWS["formula"].sizes)))
    return file


def test_each_column_has_one_turn_per_round():
    found = row.measure("formula", [], 2)
    expected = [peer for peer in (EAGER, COMPILED) if available(peer)]
    assert list(found["times"]) == list(found["variants"]) == expected
    assert all(len(times) == 2 and min(times) > 0 for times in found["times"].values())
    assert found["notes"] == []


def test_wrong_peers_are_reported_and_not_timed(reference, tmp_path):
    wrong = pickle.loads(reference.read_bytes())
    wrong.expected["output"] = wrong.expected["output"] + 1
    file = tmp_path / "wrong"
    file.write_bytes(pickle.dumps(wrong))
    with PeerProcess("formula", EAGER, file) as process:
        assert not process.runs
        [note] = process.notes
        assert note.startswith("flambeau eager wrong: output: error 1 of")


def test_crashed_processes_are_reported(reference, tmp_path):
    with PeerProcess("formula", EAGER, tmp_path / "no such file") as process:
        assert not process.runs
        assert process.notes == ["flambeau eager's process crashed"]
    with PeerProcess("formula", EAGER, reference) as process:
        assert process.runs
        assert process.turn() > 0
        process._process.kill()
        with pytest.raises(RuntimeError, match="flambeau eager ended"):
            process.turn()
