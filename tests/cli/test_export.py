"""`flambeau export FILE.py:NAME`."""

from __future__ import annotations

import json
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


def most_frequent(x):
    return x.mode(1).values


if __name__ == "__main__":
    raise SystemExit("this is not run")
'''


COMMANDS = {
    "module": ["train.py:model", "--example", "float32[batch=1:3, 2, 2]", "--weights", "weights.pt", "-o", "net.so",
               "--target", "native", "--name", "classify"],
    "function": ["train.py:step", "--example", "float32[2]", "-o", "step.so", "--target", "native"],
    "file": ["nothing.py:model", "-o", "x.so"],
    "name": ["train.py:nothing", "-o", "x.so"],
    "example": ["train.py:model", "-o", "x.so"],
    "extent": ["train.py:model", "--example", "float32[x-y]", "-o", "x.so"],
    "operator": ["train.py:most_frequent", "--example", "given", "-o", "x.so"],
}
PROGRAM = """
import contextlib, io, json, sys
from flambeau.cli import main

results = {}
for key, arguments in json.loads(sys.argv[1]).items():
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as errors:
        status = main(["export", *arguments])
    results[key] = status, out.getvalue(), errors.getvalue()
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """The folder, and for each command its exit status, output and errors; all run in one process."""
    folder = tmp_path_factory.mktemp("commands")
    (folder / "train.py").write_text(SCRIPT)
    flambeau.save({"1.weight": flambeau.zeros(3, 4), "1.bias": flambeau.ones(3)}, folder / "weights.pt")
    done = subprocess.run([sys.executable, "-c", PROGRAM, json.dumps(COMMANDS)], cwd=folder, capture_output=True,
                          text=True, check=True)
    return folder, json.loads(done.stdout)


def test_a_module_with_a_dynamic_batch(commands):
    folder, results = commands
    status, output, errors = results["module"]
    assert status == 0, errors
    assert "net.so: " in output
    assert "intermediate values" in output
    assert "one run takes" in output
    assert "linking: " in errors
    assert "int classify_run(int64_t batch," in (folder / "net.h").read_text()


@pytest.mark.parametrize("name", ["torch", "flambeau as torch"])
def test_another_target(name, tmp_path):
    """Classes are pickled for the compiler's process by names that it finds, whatever the script calls the package."""
    (tmp_path / "train.py").write_text(f"import {name}\n\nmodel = torch.nn.Linear(4, 3)\n")
    arguments = ["train.py:model", "--example", "float32[2, 4]", "-o", "net.wasm"]
    done = subprocess.run([sys.executable, "-m", "flambeau", "export", *arguments], cwd=tmp_path, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "net.wasm").read_bytes().startswith(b"\0asm")


def test_a_function_that_writes_to_tensors(commands):
    folder, results = commands
    assert results["function"][0] == 0, results["function"][2]
    assert "step_state_init" in (folder / "step.h").read_text()


@pytest.mark.parametrize(("key", "status", "text"), [
    ("file", 2, "there is no file 'nothing.py'"), ("name", 2, "train.py has no 'nothing'"),
    ("example", 2, "give an example of each argument"), ("extent", 2, "an extent is a number, or NAME=LOW:HIGH"),
    ("operator", 1, "mode has no compiled kernel")])
def test_errors(key, status, text, commands):
    got, _, errors = commands[1][key]
    assert (got, text in errors) == (status, True), errors
