"""Operators that programs in the process run outside their kernels have kernels ahead of time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau.export import aot
from tests.export.aot.c_program import Failed, run
from tests.export.aot.operators import GROUPS
from tests.export.aot.results import agree, eager


@pytest.mark.parametrize("name", GROUPS)
def test_operators_compute_what_they_compute_here(name, tmp_path):
    torch.manual_seed(0)
    function, make = GROUPS[name]
    args = make()
    expected = eager(function, args)
    path = tmp_path / f"{name}.so"
    aot.compile(function, args, path, target="native")
    [got] = run(path, [x.numpy() for x in args], expected)
    agree(got, expected, 1e-4)


def test_a_divisor_of_zero_is_a_status(tmp_path):
    path = tmp_path / "quotient.so"
    aot.compile(lambda x, y: x // y, (torch.tensor([6, 7]), torch.tensor([2, 3])), path, target="native")
    arguments = [np.int64([6, 7]), np.int64([2, 0])]
    with pytest.raises(Failed, match=r"does not hold: test_operators.py:\d+"):
        run(path, arguments, [np.zeros(2, np.int64)])


def test_an_index_out_of_range_is_a_status(tmp_path):
    def write(x: Any, i: Any) -> Any:
        return x.index_put((i,), torch.tensor(1.0))

    path = tmp_path / "write.so"
    aot.compile(write, (torch.zeros(3), torch.tensor([0])), path, target="native")
    [[got]] = run(path, [np.zeros(3, np.float32), np.int64([-1])], [np.zeros(3, np.float32)])
    assert got.tolist() == [0, 0, 1]
    for wrong in (3, -4):
        with pytest.raises(Failed, match=r"range of indices, does not hold: test_operators.py:\d+"):
            run(path, [np.zeros(3, np.float32), np.int64([wrong])], [np.zeros(3, np.float32)])


def test_a_matrix_that_is_not_positive_definite_is_a_status(tmp_path):
    path = tmp_path / "root.so"
    aot.compile(torch.linalg.cholesky, (torch.eye(2),), path, target="native")
    with pytest.raises(Failed, match="does not hold"):
        run(path, [np.float32([[1, 2], [2, 1]])], [np.zeros((2, 2), np.float32)])
