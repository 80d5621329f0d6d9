"""The API reference is complete: public names have docstrings and examples (run by `tests/test_doctests.py`)."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def reference():
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module("reference_pages")
    finally:
        sys.path.remove(str(DOCS))


def test_every_public_name_has_a_docstring_and_an_example(reference):
    assert not list(reference.incomplete())


def test_every_namespace_has_names_and_a_page_in_the_index(reference):
    index = (DOCS / "reference" / "index.md").read_text(encoding="utf-8").split()
    for namespace in reference.NAMESPACES:
        assert list(reference.members(namespace)), namespace
        assert namespace.page in index


def test_public_objects_of_every_kind_are_listed(reference):
    pages = {namespace.name: dict(reference.members(namespace)) for namespace in reference.NAMESPACES}
    for namespace, name in (("", "tanh"), ("", "Tensor"), ("", "no_grad"), ("Tensor", "backward"), ("Tensor", "shape"),
                            ("nn", "Linear"), ("nn.functional", "relu"), ("optim", "Adam"), ("linalg", "svd")):
        assert name in pages[namespace], (namespace, name)


def test_signatures_have_names_and_defaults_without_annotations(reference):
    def function(input: int, *, dim: int | None = None, _private: int = 0, other: object = object()) -> int: ...

    assert reference.signature(function) == "(input, *, dim=None, other=...)"
    assert reference.signature(function, method=True) == "(*, dim=None, other=...)"


def test_markup_characters_of_formulas_are_escaped_outside_of_code(reference):
    lines = ["|x|, a*b, add_ and `a*b`", ">>> a * b", "6", "", "* c*d"]
    reference.escape(lines)
    assert lines == [r"\|x\|, a\*b, add\_ and `a*b`", ">>> a * b", "6", "", r"* c\*d"]
