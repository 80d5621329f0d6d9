"""The namespace of functions: each name has one definition."""

from __future__ import annotations

import ast
from collections import defaultdict
from importlib import import_module
from pathlib import Path

from flambeau._tensor import functions, methods


def families() -> list[str]:
    """The modules that `functions` takes its names from, as it imports them."""
    tree = ast.parse(Path(functions.__file__).read_text(encoding="utf-8"))
    return [f"flambeau._tensor.{node.module}" for node in tree.body
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"]


def test_each_function_is_defined_by_one_family():
    found = defaultdict(dict)
    for module in families():
        for name in import_module(module).__all__:
            found[name][id(getattr(import_module(module), name))] = module
    assert len(found) > 200
    assert not {name: list(of.values()) for name, of in found.items() if len(of) > 1}


def test_each_method_is_defined_by_one_family():
    found = defaultdict(dict)
    for path in Path(methods.__file__).parent.rglob("*.py"):
        if path.stem == "__init__":
            continue
        module = ".".join(("flambeau._tensor", *path.relative_to(Path(methods.__file__).parent).with_suffix("").parts))
        for name, method in getattr(import_module(module), "METHODS", {}).items():
            found[name][id(method)] = module
    assert len(found) > 100
    assert not {name: list(of.values()) for name, of in found.items() if len(of) > 1}
