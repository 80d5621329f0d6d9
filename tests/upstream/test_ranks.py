"""Files of PyTorch's whose tests have several ranks: processes and threads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FILE = '''
import torch
import torch.distributed as dist
from torch.testing._internal.common_distributed import MultiProcessTestCase, MultiThreadedTestCase


class TestProcesses(MultiProcessTestCase):
    @property
    def world_size(self):
        return 2

    def setUp(self):
        super().setUp()
        self._spawn_processes()

    def test_sum(self):
        dist.init_process_group("gloo", store=dist.FileStore(self.file_name, 2), rank=self.rank, world_size=2)
        x = torch.ones(2) * (self.rank + 1)
        dist.all_reduce(x)
        self.assertEqual(x, torch.full((2,), 3.))

    def test_wrong(self):
        if self.rank == 1:
            self.assertEqual(1, 2, "the second rank")


class TestThreads(MultiThreadedTestCase):
    @property
    def world_size(self):
        return 3

    def setUp(self):
        super().setUp()
        self._spawn_threads()

    def test_gather(self):
        parts = [torch.zeros(1) for _ in range(3)]
        dist.all_gather(parts, torch.full((1,), float(dist.get_rank())))
        self.assertEqual(torch.cat(parts), torch.arange(3.))

    def test_wrong(self):
        self.assertEqual(dist.get_world_size(), 2)
'''


def test_ranks_of_tests(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("expecttest")
    path = tmp_path / "test_some_ranks.py"
    path.write_text(FILE)
    done = subprocess.run([sys.executable, "-m", "tests.upstream", str(path), "--all", "--timeout", "5"],
                          cwd=Path(__file__).resolve().parents[2], capture_output=True, text=True, check=False)
    ended = {line.split(" - ")[0].split()[-1]: line.split()[0] for line in done.stdout.splitlines() if "::" in line}
    assert ended == {"TestProcesses::test_sum": "pass", "TestProcesses::test_wrong": "fail",
                     "TestThreads::test_gather": "pass", "TestThreads::test_wrong": "fail"}, done.stderr
    assert "the second rank" in done.stdout
