"""Doctests of all modules of the package."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from flambeau.ops.declare import Op
from tests.conftest import collect_marks

PACKAGE = Path(__file__).resolve().parent.parent / "flambeau"


def modules() -> list[str]:
    names = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if ">>>" in path.read_text(encoding="utf-8"):
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return names


@pytest.mark.parametrize("name", modules())
def test_the_examples_of_a_module(name):
    module = importlib.import_module(name)
    collect_marks(0)  # a tensor with handlers, in a cycle of an earlier test, would keep operators off fast paths
    failures: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    examples = doctest.DocTestFinder(exclude_empty=True).find(module)
    for operator in vars(module).values():  # docstrings of declared operators are those of the public functions
        if isinstance(operator, Op) and operator.doc:
            examples.append(doctest.DocTestParser().get_doctest(operator.doc, {}, operator.name, name, 0))
    for example in examples:
        runner.run(example, out=failures.append)
    assert not failures, "".join(failures)
