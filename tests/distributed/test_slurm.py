"""The manual's command lines for Slurm, with the variables that `srun` sets set by hand."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys

import pytest

from .ranks import ROOT

PROGRAM = """
import os
import torch.distributed as dist
dist.init_process_group("gloo")
seen = [None] * dist.get_world_size()
dist.all_gather_object(seen, (dist.get_rank(), int(os.environ["LOCAL_RANK"])))
print(seen)
dist.destroy_process_group()
"""
LINES = re.findall(r"^\$ srun --mpi=none bash -c '(.*)'$", (ROOT / "docs" / "distributed.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize(("line", "expected"), [
    (LINES[0], [(0, 0), (1, 1)]), (LINES[1].replace("--nproc-per-node 2", "--nproc-per-node 1"), [(0, 0), (1, 0)])],
    ids=["a process a task", "torchrun a machine"])
def test_lines_of_the_manual(line, expected, tmp_path):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = line.replace("flambeau ", f"{sys.executable} -m flambeau ").replace("train.py", str(path))
    tasks = []
    for task in range(2):
        slurm = {"SLURM_PROCID": task, "SLURM_NTASKS": 2, "SLURM_LOCALID": task, "SLURM_NNODES": 2,
                 "SLURM_NODEID": task, "SLURM_JOB_ID": 7, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                 "PYTHONPATH": ROOT}
        tasks.append(subprocess.Popen(["bash", "-c", line], env=os.environ | {k: str(v) for k, v in slurm.items()},
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    for task in tasks:
        out, errors = task.communicate(timeout=60)
        assert (task.returncode, out.strip()) == (0, str(expected)), errors
