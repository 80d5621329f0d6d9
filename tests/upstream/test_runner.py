"""The runner of PyTorch's test files, on a test file in their style."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FILE = '''
import types
import unittest
import torch
import torch_npu
from torch.utils.cpp_extension import load_inline
from torch._inductor.nowhere import allow_in_graph
from torch.nowhere import something
from torch.testing._internal.common_utils import TestCase, run_tests, parametrize, subtest, \\
    instantiate_parametrized_tests, skipIfTorchDynamo
from torch.testing._internal.common_device_type import instantiate_device_type_tests, dtypes, onlyCUDA


@allow_in_graph
def compiled(x):
    return x


class TestSome(TestCase):
    def test_equal(self):
        self.assertEqual(torch.ones(2), [1, 1])
        self.assertEqual([torch.ones(1), 1], (torch.ones(1), 1.0))
        with self.assertRaisesRegex(AssertionError, "values differ|not close"):
            self.assertEqual(torch.ones(2), torch.zeros(2))
        with self.assertRaisesRegex(AssertionError, "dtype"):
            self.assertEqual(torch.ones(2), torch.ones(2, dtype=torch.double))

    def test_extension(self):
        self.assertIsInstance(torch.add, types.BuiltinFunctionType)
        self.assertNotIsInstance(torch.nn.functional.silu, types.BuiltinFunctionType)

    def test_wrong(self):
        self.assertEqual(1, 2)

    def test_compiled(self):
        compiled(1)

    def test_internal(self):
        torch._C._something()

    def test_missing(self):
        something()

    def test_nothing_to_do_with_us(self):
        raise ValueError

    def test_endless(self):
        while True:
            pass

    @skipIfTorchDynamo("fine here")
    @parametrize("x,y", [(1, 2), subtest((3, 4), name="three")])
    def test_pairs(self, x, y):
        self.assertEqual(y - x, 1)

    @unittest.skip("as it says")
    def test_skipped(self):
        raise ValueError


class TestDevices(TestCase):
    @dtypes(torch.float, torch.double)
    def test_dtype(self, device, dtype):
        self.assertEqual(torch.ones(1, device=device, dtype=dtype).dtype, dtype)

    @onlyCUDA
    def test_other(self, device):
        raise ValueError

    def test_renamed(self, device):
        self.assertEqual(torch.ones(1, device="npu").device.type, "npu")


instantiate_parametrized_tests(TestSome)
instantiate_device_type_tests(TestDevices, globals(), only_for="privateuse1")

if __name__ == "__main__":
    run_tests()
'''


@pytest.mark.parametrize("machinery", ["pytorch", "stubs"])
def test_loading_and_outcomes(tmp_path, machinery):
    if machinery == "pytorch":
        pytest.importorskip("torch")
        pytest.importorskip("expecttest")
    path = tmp_path / "test_some.py"
    path.write_text(FILE)
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-m", "tests.upstream", str(path), "--all", "--timeout", "1",
                           *(["--stubs"] if machinery == "stubs" else [])],
                          cwd=root, capture_output=True, text=True, check=False)
    ended = {line.split(" - ")[0].split()[-1].partition("::")[2]: line.split()[0] for line in done.stdout.splitlines()
             if "::" in line}
    assert ended == {
        "test_equal": "pass", "test_wrong": "fail", "test_compiled": "internal", "test_internal": "internal",
        "test_missing": "fail", "test_nothing_to_do_with_us": "fail", "test_endless": "fail",
        "test_pairs_x_1_y_2": "pass", "test_pairs_three": "pass", "test_skipped": "skipped",
        "test_dtype_cpu_float32": "pass", "test_dtype_cpu_float64": "pass", "test_other_cpu": "skipped",
        "test_renamed_cpu": "pass", "test_extension": "pass"}, done.stderr
    assert done.stdout.splitlines()[-1] == "7 pass, 4 fail, 2 internal, 2 skipped, 0 not applicable"
    assert done.returncode == 1


def test_the_list_of_excluded_tests_has_reasons():
    for line in (Path(__file__).parent / "not_applicable.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            pattern, dash, reason = line.partition(" - ")
            assert pattern.count("::") == 2, line
            assert dash, line
            assert reason.strip(), line
