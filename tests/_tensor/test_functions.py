"""The namespace of functions: each name has one definition."""

from __future__ import annotations

import pickle
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import pytest

from flambeau import _tensor
from flambeau.lazy_modules import FUNCTIONS


def families() -> list[str]:
    """The modules that `functions` takes its names from."""
    return [f"flambeau._tensor.{module}" for module in FUNCTIONS]


def test_each_function_is_defined_by_one_family():
    found = defaultdict(dict)
    for module in families():
        for name in import_module(module).__all__:
            found[name][id(getattr(import_module(module), name))] = module
    assert len(found) > 200
    assert not {name: list(of.values()) for name, of in found.items() if len(of) > 1}


def test_each_method_is_defined_by_one_family():
    found = defaultdict(dict)
    package = Path(_tensor.__file__).parent
    for path in package.rglob("*.py"):
        if path.stem == "__init__":
            continue
        module = ".".join(("flambeau._tensor", *path.relative_to(package).with_suffix("").parts))
        for name, method in getattr(import_module(module), "METHODS", {}).items():
            if not isinstance(method, str):  # the table of the lazy ones
                found[name][id(method)] = module
    assert len(found) > 100
    assert not {name: list(of.values()) for name, of in found.items() if len(of) > 1}


@pytest.mark.parametrize("module", ["", ".nn.functional", ".special", ".linalg"])
def test_functions_are_pickled_by_name(module):
    namespace = import_module(f"flambeau{module}")
    names = [name for name in dir(namespace) if not name.startswith("_") and not name.endswith("_")
             and callable(getattr(namespace, name)) and not isinstance(getattr(namespace, name), type)]
    for name in names:
        function = getattr(namespace, name)
        assert pickle.loads(pickle.dumps(function)) is function, name
