"""Operators that programs in the process run outside their kernels have kernels ahead of time."""

from __future__ import annotations

import subprocess
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau.export import aot, export
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


def test_bfloat16_modules(tmp_path):
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 8)).bfloat16().eval()
    x = torch.randn(4, 16).bfloat16()
    with torch.no_grad():
        expected = module(x)
    path = tmp_path / "half.so"
    export(module, (x,)).save(path, target="native")
    [[got]] = run(path, [x.view(torch.uint16).numpy()], [expected.view(torch.uint16).numpy()])
    torch.testing.assert_close(torch.from_numpy(got.copy()).view(torch.bfloat16), expected)


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


def test_headers_of_complex_numbers_and_guards_are_c_and_cpp(tmp_path):
    def mixed(z: Any, i: Any, j: Any) -> Any:
        return z.conj() * 2, i // j, torch.fft.rfft(z.real), i > 2

    args = torch.randn(3, dtype=torch.complex64), torch.tensor([1, 2]), torch.tensor([3, 4])
    path = tmp_path / "mixed.so"
    report = aot.compile(mixed, args, path, target="native")
    assert [str(each.c_type) for each in report.interface.outputs] == ["float", "int64_t", "float", "uint8_t"]
    expected = eager(mixed, args)
    [got] = run(path, [x.numpy() for x in args], expected)
    for x, y in zip(got, expected, strict=True):
        np.testing.assert_allclose(x, y, 1e-5, 1e-5)
    (tmp_path / "use.c").write_text('#include "mixed.h"\nint main(void) { return !mixed_error_text(MIXED_GUARD_1); }\n')
    for command in (["cc", "-std=c99"], ["c++", "-x", "c++", "-std=c++11"]):
        flags = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "use.c"]
        subprocess.run([*command, *flags], check=True, cwd=tmp_path)
