"""The selection of `make quick`: distances of test files from a change, and the time budget."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import quick
from tests.quick import Tree, allocate, distances, mirrors, sample


@pytest.mark.parametrize(("module", "test", "expected"), [
    ("flambeau/ir/printing.py", "tests/ir/test_printing.py", True),
    ("flambeau/ir/schedule/memory_planner.py", "tests/ir/test_memory_planner.py", True),
    ("flambeau/codegen/convolution/direct.py", "tests/codegen/test_convolution_eager.py", True),
    ("flambeau/codegen/matmul/__init__.py", "tests/codegen/test_matmul.py", True),
    ("flambeau/_tensor/printing.py", "tests/ir/test_printing.py", False),
    ("flambeau/ir/printing.py", "tests/ir/test_plan_cache.py", False),
    ("flambeau/switches.py", "tests/test_switches.py", True),
    ("flambeau/switches.py", "tests/ir/test_switches.py", False),
])
def test_a_test_file_mirrors_a_module_by_folder_and_name(module, test, expected):
    assert mirrors(module, test) is expected


TREE = Tree(
    tests=frozenset({"tests/ir/test_printing.py", "tests/ir/test_graph.py", "tests/compiler/test_explain.py",
                     "tests/nn/test_linear.py", "tests/viz/test_explorer.py", "tests/test_architecture.py",
                     "tests/test_doctests.py"}),
    imports={"tests/viz/test_explorer.py": frozenset({"flambeau/ir/printing.py"}),
             "flambeau/nn/linear.py": frozenset({"flambeau/ir/printing.py"}),
             **dict.fromkeys(["tests/ir/test_printing.py", "tests/ir/test_graph.py", "tests/compiler/test_explain.py",
                              "tests/nn/test_linear.py", "tests/test_architecture.py", "tests/test_doctests.py",
                              "flambeau/ir/printing.py"], frozenset())})


def test_distances_follow_mirrors_imports_and_folders():
    assert distances(TREE, ["flambeau/ir/printing.py"]) == {
        "tests/ir/test_printing.py": 0, "tests/test_architecture.py": 0, "tests/viz/test_explorer.py": 1,
        "tests/ir/test_graph.py": 2, "tests/compiler/test_explain.py": 3, "tests/nn/test_linear.py": 3,
        "tests/test_doctests.py": 4}


def test_a_changed_test_file_runs_alone_with_the_checks_of_the_tree():
    assert distances(TREE, ["tests/nn/test_linear.py"]) \
        == {"tests/nn/test_linear.py": 0, "tests/test_architecture.py": 0}


def test_the_budget_goes_to_the_nearest_first_and_no_file_takes_more_than_half_of_the_rest():
    found = {"far": 2, "near": 0, "long": 1}
    assert allocate(found, {"near": 10, "long": 1000, "far": 5}, 50) == {"near": 1.0, "long": 0.02, "far": 1.0}


def test_a_sample_keeps_what_names_the_change_and_every_nth_other():
    ids = [f"t.py::test_values[{name}]" for name in ("tan", "tanh", "sin", "cos", "exp", "log")]
    assert sample(ids, 1, {"tanh"}) == [True] * 6
    assert [each for each, kept in zip(ids, sample(ids, 1 / 3, {"tanh"}), strict=True) if kept] \
        == [ids[0], ids[1], ids[3]]


def test_durations_name_test_files_that_exist():
    assert quick.read_durations().keys() <= quick.read_tree().tests, "make test ARGS=--store-durations"


def test_the_command_lists_a_selection_or_says_why_it_cannot():
    done = subprocess.run([sys.executable, "-m", "tests.quick", "--list", "--base", "HEAD"], cwd=quick.ROOT,
                          text=True, capture_output=True, check=False)
    if (quick.ROOT / ".git").exists():
        assert done.returncode == 0, done.stderr
        assert "differ from HEAD" in done.stdout or "nothing differs" in done.stdout
    else:
        assert done.returncode == 2
        assert "make test" in done.stderr


def test_an_unknown_commit_is_reported(capsys):
    assert quick.main(["--list", "--base", "no-such-commit"]) == 2
    assert "no-such-commit" in capsys.readouterr().err
