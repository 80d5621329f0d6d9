"""Names in `getattr`, `hasattr` and `setattr` exist: a renamed attribute is not left behind in a string.

`hasattr(x, "old_name")` is False for ever, without an error; what depended on it is merely slow, or missing.
"""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "flambeau"

#: attributes of other packages' objects, and protocols of PyTorch that users' classes implement
EXTERNAL = {"MAP_SHARED", "_is_gil_enabled", "_pocketfft_umath", "_wrap_overrides",
            "__prepare_scriptable__", "_get_raw", "_jit_override_qualname", "_step_supports_amp_scaling",
            # torch.fx: of users' modules, functions and results
            "_base_class_origin", "_create_node_hooks", "_custom_fx_repr_fn", "_erase_node_hooks", "_is_impure",
            "_replace_hooks", "submod_1"}


def names_and_strings(source: str) -> tuple[set[str], set[str]]:
    """The names that a module defines or reads, and those that it has as strings."""
    names, strings = set(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Call) and len(node.args) > 1 and isinstance(node.args[1], ast.Constant) and (
                getattr(node.func, "id", None) in ("hasattr", "getattr", "setattr", "delattr")):
            strings.add(node.args[1].value)
    return names, strings


def test_attributes_named_in_strings_exist():
    found = [names_and_strings(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")]
    names = set().union(*(each[0] for each in found))
    strings = set().union(*(each[1] for each in found))
    assert strings - names == EXTERNAL


def test_strings_are_found():
    source = "def f(x):\n    return hasattr(x, 'gone') and x.here"
    assert names_and_strings(source) == ({"f", "x", "here", "hasattr"}, {"gone"})
