"""The manual's command lines for Slurm, with the variables that `srun` sets set by hand."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

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
#: writes what the shell makes of a line: the arguments of the command, and its environment
COMMAND = f"""flambeau() {{ {sys.executable} -S -c '
import json, os, sys
print(json.dumps([sys.argv[1:], dict(os.environ)]))' "$@"; }}
"""
#: carries out the command in a process a task; the library is imported once
TASKS = """
import json, os, sys
import flambeau.distributed.run
from flambeau.cli import main
children = []
for arguments, environment, path in json.load(sys.stdin):
    child = os.fork()
    if not child:
        status = 1
        try:
            os.environ.clear()
            os.environ.update(environment)
            for stream, name in (1, "out"), (2, "errors"):
                os.dup2(os.open(f"{path}.{name}", os.O_WRONLY | os.O_CREAT), stream)
            status = main(arguments)
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    children.append(child)
print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]))
"""


@functools.cache
def outcomes():
    """For each line, the exit status, output and errors of both tasks."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "train.py")
        script.write_text(PROGRAM)
        tasks = []
        for number, line in enumerate(LINES):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            line = line.replace("--nproc-per-node 2", "--nproc-per-node 1").replace("train.py", str(script))
            for task in range(2):
                slurm = {"SLURM_PROCID": task, "SLURM_NTASKS": 2, "SLURM_LOCALID": task, "SLURM_NNODES": 2,
                         "SLURM_NODEID": task, "SLURM_JOB_ID": 7, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                         "PYTHONPATH": ROOT}
                seen = subprocess.check_output(["bash", "-c", COMMAND + line],
                                               env=os.environ | {k: str(v) for k, v in slurm.items()})
                tasks.append((*json.loads(seen), f"{folder}/{number}.{task}"))
        process = subprocess.Popen([sys.executable, "-c", TASKS], cwd=ROOT, stdin=subprocess.PIPE, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            statuses, errors = process.communicate(json.dumps(tasks), timeout=60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # the tasks, too
                process.communicate()
        assert process.returncode == 0, errors
        found = [(status, Path(f"{path}.out").read_text(), Path(f"{path}.errors").read_text())
                 for status, (_, _, path) in zip(json.loads(statuses), tasks, strict=True)]
        return [found[i:i + 2] for i in range(0, len(found), 2)]


@pytest.mark.parametrize(("line", "expected"), [(0, [(0, 0), (1, 1)]), (1, [(0, 0), (1, 0)])],
                         ids=["a process a task", "torchrun a machine"])
def test_lines_of_the_manual(line, expected):
    assert len(LINES) == 2
    for status, out, errors in outcomes()[line]:
        assert (status, out.strip()) == (0, str(expected)), errors
