"""Each test contains an assertion, or calls a test helper that does; skips are listed."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import listed_skips, unlisted

TESTS = Path(__file__).resolve().parent
PATHS = sorted(TESTS.rglob("*.py"))

#: assertion functions of libraries
CHECKS = {"assert_allclose", "assert_array_equal", "assert_array_almost_equal", "assert_close", "assert_equal", "fail",
          "gradcheck", "gradgradcheck", "raises", "warns", "deprecated_call"}


def called(tree: ast.AST) -> set[str]:
    """The unqualified names of called functions: `assert_equal` for `np.testing.assert_equal(...)`."""
    return {call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            for call in ast.walk(tree) if isinstance(call, ast.Call)}


def asserts(tree: ast.AST, checks: set[str]) -> bool:
    """Whether a function contains an assertion, raises, or calls one of the checks."""
    return any(isinstance(node, (ast.Assert, ast.Raise)) for node in ast.walk(tree)) or bool(called(tree) & checks)


def functions(path: Path) -> list[ast.FunctionDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


@cache
def checks() -> frozenset[str]:
    """The names of test helpers that assert, directly or through others."""
    helpers = [node for path in PATHS for node in functions(path) if not node.name.startswith("test_")]
    asserting = set(CHECKS)
    while True:
        more = {node.name for node in helpers if node.name not in asserting and asserts(node, asserting)}
        if not more:
            return frozenset(asserting)
        asserting |= more


@pytest.mark.parametrize("path", [path for path in PATHS if path.name.startswith("test_")],
                         ids=lambda path: str(path.relative_to(TESTS)))
def test_every_test_asserts(path: Path):
    silent = [f"{path.relative_to(TESTS)}:{node.lineno} {node.name}" for node in functions(path)
              if node.name.startswith("test_") and not asserts(node, set(checks()))]
    assert not silent, "\n".join(silent)


def test_an_assertion_is_recognized():
    tree = ast.parse("def f(): x = 1\ndef g(): np.testing.assert_equal(1, 1)\ndef h(): assert x")
    assert [asserts(node, CHECKS) for node in tree.body] == [False, True, True]


def test_skips_that_are_not_listed_are_found():
    assert unlisted([("a.py", "slow")] * 2, {("a.py", "slow"): 2}) == []
    assert unlisted([("a.py", "slow")] * 3, {("a.py", "slow"): 2}) == ["3 a.py slow (listed: 2)"]
    assert unlisted([("b.py", "new")], {}) == ["1 b.py new (listed: 0)"]


def test_listed_skips_are_of_files_that_exist():
    assert listed_skips()
    assert not [path for path, _ in listed_skips() if not (TESTS / path).is_file()]
