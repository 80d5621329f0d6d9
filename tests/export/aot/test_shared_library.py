"""Shared libraries: models called from a C program compute what they compute here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau.export import Dim, export
from tests.export.aot.c_program import Failed, run
from tests.export.aot.models import MODELS, make
from tests.export.aot.results import agree, eager


@pytest.mark.parametrize("name", MODELS)
def test_a_model_computes_in_c_what_it_computes_here(name, tmp_path):
    module, args = make(name)
    expected = eager(module, args)
    path = tmp_path / f"{name}.so"
    export(module, args).save(path, target="native")
    [got] = run(path, [x.numpy() for x in args], expected)
    agree(got, expected)


def test_a_dynamic_batch_has_code_for_each_size(tmp_path):
    module, args = make("cnn")
    program = export(module, args, dynamic_shapes=({0: Dim("batch", min=1, max=5)},))
    path = tmp_path / "cnn.so"
    report = program.save(path, target="native")
    assert [*report.arenas] == [(n,) for n in range(1, 6)]
    for count in (1, 4, 5):
        x = torch.randn(count, 3, 12, 12)
        expected = eager(module, (x,))
        [got] = run(path, [x.numpy()], expected, sizes=[count])
        agree(got, expected)
    with pytest.raises(Failed, match="there is no code for these sizes"):
        run(path, [x.numpy()], expected, sizes=[6])


def test_two_dynamic_sizes_and_sizes_that_are_given(tmp_path):
    class Scores(torch.nn.Module):
        def forward(self, q: Any, k: Any) -> Any:
            return torch.softmax(q @ k.transpose(1, 2), -1), q.flatten(0, 1)

    args = (torch.randn(2, 3, 4), torch.randn(2, 6, 4))
    batch, length = Dim("batch"), Dim("length")
    program = export(Scores(), args, dynamic_shapes=({0: batch, 1: length}, {0: batch, 1: 2 * length}))
    path = tmp_path / "scores.so"
    report = program.save(path, target="native", sizes={"batch": [1, 2], "length": [2, 3]})
    assert [*map(str, report.interface.outputs[0].shape)] == ["batch", "length", "2*length"]
    assert [*map(str, report.interface.outputs[1].shape)] == ["batch*length", "4"]
    args = (torch.randn(1, 2, 4), torch.randn(1, 4, 4))
    expected = eager(Scores(), args)
    [got] = run(path, [x.numpy() for x in args], expected, sizes=[1, 2])
    agree(got, expected)
    with pytest.raises(ValueError, match="the dynamic sizes are"):
        program.save(path, sizes={"rows": [1]})


def test_an_index_out_of_range_is_a_status(tmp_path):
    module, (tokens,) = make("lstm")
    expected = eager(module, (tokens,))
    path = tmp_path / "lstm.so"
    export(module, (tokens,)).save(path, target="native")
    wrong = tokens.numpy().copy()
    wrong[0, 0] = 10
    with pytest.raises(Failed, match=r"range of indices, does not hold: models.py:\d+: .*self.embedding"):
        run(path, [wrong], expected)


def test_inputs_that_are_written_to(tmp_path):
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(2))

        def forward(self, x: Any) -> Any:
            self.total += x
            return self.total * 2

    path = tmp_path / "counter.so"
    report = export(Counter(), (torch.ones(2),)).save(path, target="native")
    assert report.state == 8
    got = run(path, [np.float32([1, 2])], [np.zeros(2, np.float32)], runs=3, state=True)
    assert [x.tolist() for [x] in got] == [[2, 4], [4, 8], [6, 12]]
