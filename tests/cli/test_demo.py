"""`flambeau demo` runs and writes its pictures, with and without Graphviz."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PICTURES = {"forward-graph.png", "reverse-adjoint-graph.png", "autograd-graph.png", "descent-convex.png",
            "descent-non-convex.png", "digits-training.png", "digits-graph.png"}


@pytest.mark.slow
@pytest.mark.parametrize("with_dot", [True, False])
def test_the_demo(tmp_path, with_dot):
    environment = dict(os.environ, COLUMNS="120")
    if not with_dot:
        environment["PATH"] = str(tmp_path)  # no dot there
    done = subprocess.run([sys.executable, "-W", "error", "-m", "flambeau", "demo", "--out", tmp_path / "out"],
                          capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "out").iterdir()} == PICTURES
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (tmp_path / "out").iterdir())
    for text in ("11.652", "5.5", "1.716", "4.499998", "-3.121674", "-0.121152", "test accuracy 9"):
        assert text in done.stdout
    for name in PICTURES:
        assert name in done.stdout


def test_without_its_extras_the_demo_says_what_to_install(monkeypatch, capsys):
    from flambeau.cli import main
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    for name in [name for name in sys.modules if name.startswith("flambeau.demo")]:
        monkeypatch.delitem(sys.modules, name)
    assert main(["demo"]) == 1
    assert "pip install flambeau[demo]" in capsys.readouterr().err
