"""Order of turns, ratios and cells of the table."""

from __future__ import annotations

import pytest

from benchmarks import sharing, table, timing
from benchmarks.markdown import duration
from benchmarks.workloads import ROWS

TIMES = {"PyTorch eager": [4.0, 4.0, 9.0], "PyTorch tuned": [3.0, 3.5, 9.0], "jax.jit": [5.0, 1.0, 9.0],
         "flambeau eager": [2.0, 1.0, 1.0], "flambeau compiled": [3.0, 7.0, 9.0]}


def test_ratios_are_medians_of_the_rounds():
    *_, eager, compiled = table.cells(ROWS["gpt"], TIMES)
    assert eager == "4.00 (1.2)"  # of 2, 4 and 9
    assert compiled == "**1.00** (1.4)"  # beside the tuned optimizer, whose median is least: 1, 0.5 and 1


def test_peers_that_are_missing_leave_their_cells_empty():
    only_ours = {"flambeau eager": [2e-3]}
    title, *cells = table.cells(ROWS["conv"], only_ours)
    assert title == ROWS["conv"].title
    assert cells == ["-", "-", "-", "-", "2 ms", "-", "- (1.4)", "- (1.1)"]
    assert len(table.HEADS) == len(cells) + 1


def test_the_best_peer_need_not_be_pytorch():
    times = {"jax.jit": [1.0], "torch.compile": [2.0], "flambeau compiled": [0.5]}
    assert table.cells(ROWS["conv"], times)[-2:] == ["- (1.4)", "2.00 (1.1)"]


def test_remarks_list_fastest_variants_and_failures():
    found = {"variants": {"PyTorch eager": "nn.RNN", "jax.jit": ""}, "notes": ["torch.compile failed: KeyError: 3"]}
    assert table.remarks(ROWS["rnn"], found) == [
        f"- {ROWS['rnn'].title}: PyTorch eager: nn.RNN; torch.compile failed: KeyError: 3."]
    assert table.remarks(ROWS["rnn"], {"variants": {"jax.jit": ""}, "notes": []}) == []


def test_rounds_alternate_the_order_of_turns(monkeypatch):
    monkeypatch.setattr(timing, "SETTLE", 0)
    monkeypatch.setattr(timing, "BATCH_SECONDS", 1e-6)
    order = []
    times = timing.rounds({name: lambda: None for name in "abc"}, 6, order.append)
    assert all(len(values) == 6 and min(values) > 0 for values in times.values())
    turns = ["".join(order[at:at + 3]) for at in range(0, 18, 3)]
    assert turns == ["abc", "cba", "bca", "acb", "cab", "bac"]


@pytest.mark.parametrize(("seconds", "text"), [
    (None, "-"), (2.5, "2.5 s"), (1.234e-3, "1.23 ms"), (45e-6, "45 µs"), (7e-9, "7 ns")])
def test_units_of_durations(seconds, text):
    assert duration(seconds) == text


def test_sentence_on_cache_line_sharing():
    said = sharing.text([6.04e-9, 27.3e-9, None, 26e-9])
    assert said.startswith("Writing a cache line that the other core had read took 6, 27 and 26 ns")
    assert sharing.text([None, None]) == ""
    took = sharing.line()
    assert took is None or 0 < took < 1e-3
