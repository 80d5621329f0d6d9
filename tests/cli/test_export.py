"""`flambeau export FILE.py:NAME`."""

from __future__ import annotations

import subprocess
import sys

import pytest

import flambeau

SCRIPT = '''
import torch
from torch import nn

model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.Dropout(0.5))
weight = torch.ones(2, requires_grad=True)
given = torch.ones(5, 2, 2)


def step(x):
    loss = (weight * x).sum()
    gradient, = torch.autograd.grad(loss, weight)
    with torch.no_grad():
        weight.sub_(gradient)
    return loss.detach()


def sorted_rows(x):
    return x.sort(1).values


if __name__ == "__main__":
    raise SystemExit("this is not run")
'''


@pytest.fixture
def command(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "flambeau", "export", *arguments], cwd=tmp_path,
                              capture_output=True, text=True, check=False)

    return run


def test_a_module_with_a_dynamic_batch(command, tmp_path):
    flambeau.save({"1.weight": flambeau.zeros(3, 4), "1.bias": flambeau.ones(3)}, tmp_path / "weights.pt")
    done = command("train.py:model", "--example", "float32[batch=1:3, 2, 2]", "--weights", "weights.pt", "-o", "net.so",
                   "--target", "native", "--name", "classify")
    assert done.returncode == 0, done.stderr
    assert "net.so: " in done.stdout
    assert "intermediate values" in done.stdout
    assert "one run takes" in done.stdout
    assert "linking: " in done.stderr
    assert "int classify_run(int64_t batch," in (tmp_path / "net.h").read_text()


def test_a_function_that_writes_to_tensors(command, tmp_path):
    done = command("train.py:step", "--example", "float32[2]", "-o", "step.so", "--target", "native")
    assert done.returncode == 0, done.stderr
    assert "step_state_init" in (tmp_path / "step.h").read_text()


ERRORS = [
    (["nothing.py:model", "-o", "x.so"], 2, "there is no file 'nothing.py'"),
    (["train.py:nothing", "-o", "x.so"], 2, "train.py has no 'nothing'"),
    (["train.py:model", "-o", "x.so"], 2, "give an example of each argument"),
    (["train.py:model", "--example", "float32[x-y]", "-o", "x.so"], 2, "an extent is a number, or NAME=LOW:HIGH"),
    (["train.py:sorted_rows", "--example", "given", "-o", "x.so"], 1, "sort has no compiled kernel"),
]


def test_errors(command, tmp_path):
    calls = "; ".join(f"print(main({['export', *arguments]!r}), flush=True)" for arguments, _, _ in ERRORS)
    done = subprocess.run([sys.executable, "-c", f"from flambeau.cli import main; {calls}"], cwd=tmp_path,
                          capture_output=True, text=True, check=False)
    assert [*map(int, done.stdout.split())] == [status for _, status, _ in ERRORS]
    assert all(text in done.stderr for _, _, text in ERRORS), done.stderr
