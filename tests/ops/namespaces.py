"""The table of namespaces: which functions `xp.<name>` the four namespaces of operator declarations have.

    python -m tests.ops.namespaces            print the table
    python -m tests.ops.namespaces --write    write it to tests/ops/namespaces.txt

Its rows are all names that declarations in `flambeau/ops` use as `xp.<name>`. Its columns:

    arrays    NumPy arrays: `backends.numpy.ArrayNamespace`, eager forward and backward
    tensors   tensors: `_tensor.functions`, backward under create_graph and composites
    scalars   scalar IR: `backends.compiled.tracing.namespace.ExpressionNamespace`, elementwise kernels
    values    IR values: `ir.lowering.namespace.Namespace`, compiled programs

An entry is `own` for a function of the namespace itself, `declared` for an operator's forward that runs over the
namespace, and `-` where there is neither, or the forward needs a name that is missing.
"""

from __future__ import annotations

import ast
import functools
import sys
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from flambeau._tensor import functions
from flambeau._tensor.dispatch.array_kernels import arrays
from flambeau.backends.compiled.tracing.namespace import FUNCTIONS
from flambeau.backends.numpy import is_primitive, primitive
from flambeau.ir.lowering import namespace as ir_namespace
from flambeau.ops.declare import ELEMENTWISE, REGISTRY

OPS = Path(__file__).resolve().parents[2] / "flambeau" / "ops"
FILE = Path(__file__).with_name("namespaces.txt")
COLUMNS = ("arrays", "tensors", "scalars", "values")


@functools.cache
def used_names() -> tuple[str, ...]:
    """All names that declarations use as `xp.<name>`."""
    names = set()
    for path in OPS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "xp":
                names.add(node.attr)
    return tuple(sorted(names))


def _names_in(function: Any, seen: set[CodeType]) -> set[str]:
    """The names of `used_names` that a forward, or a helper that it calls, may use."""
    code = function.__code__
    if code in seen:
        return set()
    seen.add(code)
    known, found = set(used_names()), set()
    codes = [code]
    while codes:
        each = codes.pop()
        codes += [c for c in each.co_consts if isinstance(c, CodeType)]
        found |= known & set(each.co_names)
        for name in each.co_names:
            helper = function.__globals__.get(name)
            if isinstance(helper, FunctionType) and helper.__module__.startswith("flambeau.ops"):
                found |= _names_in(helper, seen)
    return found


def _own(column: str, name: str) -> bool:
    """Whether a namespace has a function of its own for a name."""
    if column == "arrays":
        function = arrays.__dict__.get(name) or (primitive(name) if is_primitive(name) else None)
        forward = getattr(REGISTRY.get(name), "forward", None)  # stored when first used, maybe as a partial
        return function is not None and getattr(function, "func", function) is not forward
    if column == "tensors":
        return hasattr(functions, name)
    if column == "scalars":
        return name in FUNCTIONS
    return hasattr(ir_namespace.Namespace, name) or name in ir_namespace._NAMES


@functools.cache
def entry(column: str, name: str, above: frozenset[str] = frozenset()) -> str:
    """The table's entry for a name, `own`, `declared` or `-`."""
    if _own(column, name):
        return "own"
    op = REGISTRY.get(name)
    if op is None or name in above or (column == "scalars" and op.kind != ELEMENTWISE):
        return "-"
    needs = _names_in(op.forward, set()) if op.takes_xp else set()
    return "-" if any(entry(column, each, above | {name}) == "-" for each in needs) else "declared"


def table() -> str:
    """The table as text."""
    width = max(map(len, used_names())) + 2
    lines = [f"{'name':{width}}" + "".join(f"{column:10}" for column in COLUMNS).rstrip()]
    lines += [f"{name:{width}}" + "".join(f"{entry(column, name):10}" for column in COLUMNS).rstrip()
              for name in used_names()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--write" in sys.argv:
        FILE.write_text(table(), encoding="utf-8")
    else:
        print(table(), end="")
