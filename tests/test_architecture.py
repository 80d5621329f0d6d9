"""The layers: imports point downward only, and no two modules need each other.

Every `import` of the package is read from its syntax tree, wherever it stands: at the top of a module, inside a
function, or under TYPE_CHECKING. A module belongs to the layer of the longest prefix in LAYERS.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from flambeau import lazy_modules

PACKAGE = Path(__file__).resolve().parent.parent / "flambeau"

# From the ground up. A module may import from its own line and from any line above it here.
LAYERS: list[list[str]] = [
    ["version", "module_finder"],
    ["config", "devices", "dtypes", "errors", "errstate", "lazy_modules", "modes", "settings",
     "shapes", "trees", "warning_location"],
    ["kernels", "runtime"],
    ["codegen"],
    ["backends"],
    ["ops"],
    ["ir"],
    ["engine"],
    ["_tensor"],
    ["accelerators", "amp"],
    ["cuda", "fft", "func", "linalg", "masked", "random", "signal", "special", "switches", "viz"],
    ["_tensor_display", "autograd", "profiler"],
    ["c10d"],
    ["nn", "sparse"],
    ["_higher_order_ops", "distributions"],
    ["interop", "optim"],
    ["overrides"],
    ["_C", "_custom_op", "_custom_ops", "_dispatch", "_library", "_ops", "library"],
    ["compiler"],
    ["serialization"],
    ["environment"],
    ["distributed", "jit"],
    ["multiprocessing", "nested", "storage", "testing", "utils"],
    ["_subclasses", "distributed._composable", "distributed.algorithms._checkpoint", "distributed.elastic",
     "distributed.launch", "distributed.launcher", "distributed.run", "distributed.tensor.debug"],
    [""],  # the package itself: the public names
    ["alias", "cli", "compiler.dynamo.backends.common", "compiler.dynamo.backends.debugging",
     "compiler.dynamo.exporting", "compiler.dynamo.test_case", "compiler.dynamo.testing", "compiler.functorch.apis",
     "compiler.functorch.aot_autograd", "compiler.functorch.compile_utils",
     "compiler.functorch.compilers", "compiler.functorch.make_functional",
     "compiler.functorch.partitioners", "compiler.inductor.runtime", "compiler.inductor.test_case",
     "compiler.inductor.utils", "demo", "distributed._shard", "distributed.pipelining", "export",
     "functorch", "fx", "onnx", "testing._internal.logging_tensor", "testing._internal.two_tensor",
     "utils._debug_mode", "variable_functions", "__main__", "_numpy", "_prims", "_prims_common", "_refs"],
]


def modules() -> dict[str, Path]:
    """Dotted name under the package ("" for the package itself) -> file."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports_of(name: str, path: Path) -> dict[str, bool]:
    """What a module imports from the package -> whether it does so as soon as it is imported itself."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found: dict[str, bool] = {}

    def add(target: str, names: list[str], at_once: bool) -> None:
        for each in names or [""]:
            child = f"{target}.{each}".strip(".")
            module = child if each and child in MODULES else target
            parts = module.split(".")
            for length in range(1, len(parts) + 1):  # a package's __init__ runs before what is in it
                step = ".".join(parts[:length])
                if step in MODULES and not f"{name}.".startswith(f"{step}."):
                    found[step] = found.get(step, False) or at_once
            if not module:
                found[""] = found.get("", False) or at_once

    def visit(node: ast.AST, at_once: bool) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                head, _, rest = alias.name.partition(".")
                if head == "flambeau":
                    add(rest, [], at_once)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                base = package.split(".") if package else []
                base = base[: len(base) - (node.level - 1)]
                add(".".join([*base, *([module] if module else [])]), [a.name for a in node.names], at_once)
            elif module.partition(".")[0] == "flambeau":
                add(module.partition(".")[2], [a.name for a in node.names], at_once)
        inside = at_once and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and not (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(tree, True)
    return found


@cache
def imports() -> dict[str, dict[str, bool]]:
    """`imports_of` each module; parsed by the worker that runs these tests, not by all that collect them."""
    found = {name: imports_of(name, path) for name, path in MODULES.items()}
    # what imports the modules of tables on first use; the registry imports declarations, which need it, by their names
    for importer, package, table in (("_tensor.functions", "_tensor", lazy_modules.FUNCTIONS),
                                     ("_tensor.overriding.lazy_methods", "_tensor", lazy_modules.METHODS),
                                     ("backends.numpy", "backends.numpy", lazy_modules.PRIMITIVES)):
        found[importer] |= {f"{package}.{module}": False for module in table}
    return found


def layer(name: str) -> int:
    best, level = -1, None
    for depth, names in enumerate(LAYERS):
        for prefix in names:
            if (name == prefix or name.startswith(prefix + ".") or (not prefix and not name)) and len(prefix) > best:
                best, level = len(prefix), depth
    assert level is not None, f"flambeau.{name} is in no layer: give it one in LAYERS"
    return level


def test_every_module_has_a_layer():
    for name in MODULES:
        layer(name)


def test_imports_point_downward():
    upward = [f"flambeau.{importer} imports flambeau.{imported}"
              for importer, imported_by in imports().items() for imported in imported_by
              if layer(imported) > layer(importer)]
    assert not upward, "\n".join(upward)


def circles(edges: dict[str, list[str]]) -> list[list[str]]:
    """The strongly connected components of more than one module (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def connect(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for successor in edges[name]:
            if successor not in index:
                connect(successor)
                low[name] = min(low[name], low[successor])
            elif successor in stack:
                low[name] = min(low[name], index[successor])
        if low[name] == index[name]:
            component = []
            while not component or component[-1] != name:
                component.append(stack.pop())
            if len(component) > 1:
                found.append(component)

    for name in edges:
        if name not in index:
            connect(name)
    return found


def test_no_import_cycles():
    edges = {importer: [name for name in imported if name] for importer, imported in imports().items()}
    assert not circles(edges), "\n".join(" <-> ".join(sorted(knot)) for knot in circles(edges))


def test_no_folder_lists_more_than_about_25_modules():
    """Larger packages are divided by what their modules are; `nn.modules` has PyTorch's own module names.

    `distributions` has one module for each distribution, `utils` has the modules of `torch.utils`, as in PyTorch.
    """
    folders = [path.parent for path in MODULES.values() if path.name != "__init__.py"]
    crowded = {folder.relative_to(PACKAGE).as_posix(): folders.count(folder) for folder in set(folders)}
    assert not {folder: count for folder, count in crowded.items() if count > 26 and folder not in (
        "distributions", "utils")}


def test_cycles_and_upward_imports_are_detected(tmp_path):
    assert circles({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]})[0].sort() is None
    file = tmp_path / "sample.py"
    file.write_text("from . import tensor\ndef f():\n    from .nn import functional\n")
    seen = imports_of("sample", file)
    for name, at_once in (("tensor", True), ("nn.functional", False)):
        if name in MODULES:
            assert seen[name] is at_once


@pytest.mark.smoke
def test_importing_the_package_imports_nothing_heavy():
    import subprocess
    import sys
    heavy = ("matplotlib", "scipy", "torch", "rich", "sklearn", "llvmlite", "graphviz", "typing_extensions")
    code = f"import sys, flambeau; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
