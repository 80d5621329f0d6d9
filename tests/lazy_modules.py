"""The tables of `flambeau/lazy_modules`: which module declares or defines which names.

    python -m tests.lazy_modules            whether a table differs from the modules
    python -m tests.lazy_modules --write    write the tables

Run it after a function, a method, an operator or a primitive has been added.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import textwrap
from collections.abc import Container
from pathlib import Path
from types import FunctionType
from typing import Any

from flambeau import lazy_modules
from flambeau._tensor.methods import installation
from flambeau.ops.declare import REGISTRY

FILE = Path(lazy_modules.__file__)
OPS = FILE.parent.parent / "ops"
Table = dict[str, str]


def _load(package: str, module: str) -> Any:
    return importlib.import_module(f"flambeau.{package}.{module}")


def operators() -> Table:
    """The keys of operators by module: modules of the present table in its order, then others."""
    found = [f"{path.parent.name}.{path.stem}" for path in sorted(OPS.glob("*/*.py")) if path.stem != "__init__"]
    known = [module for module in lazy_modules.OPERATORS if module in found]
    keys: dict[str, list[str]] = {module: [] for module in [*known, *(each for each in found if each not in known)]}
    for module in keys:
        _load("ops", module)
    for key, op in dict.items(REGISTRY):  # in the order of declaration
        module = op.forward.__module__
        if module.startswith("flambeau.ops."):
            keys[module.removeprefix("flambeau.ops.")].append(key)
    return {module: " ".join(each) for module, each in keys.items() if each}


def operator_names(table: Table) -> Table:
    """The names under which operators are functions and methods."""
    names: dict[str, list[str]] = {"aliases": [], "methods": [], "inplace": []}
    for key in " ".join(table.values()).split():
        op = REGISTRY[key]
        aliases = [f"{name}={key}" for name in op.aliases]
        every = [op.name if op.name == key else f"{op.name}={key}", *aliases]
        names["aliases"] += aliases
        names["methods"] += every if "method" in op.expose else []
        names["inplace"] += every if "inplace" in op.expose else []
    return {kind: " ".join(each) for kind, each in names.items()}


def methods(module: str) -> str:
    """The methods of a module, without properties, and without special methods that are installed at once."""
    loaded = _load("_tensor", module)
    members: dict[str, Any] = getattr(loaded, "METHODS", {})
    return " ".join(name for name, member in members.items() if isinstance(member, FunctionType)
                    and not (name.startswith("__") and loaded in installation.SPECIAL))


def _with_table(package: str, name: str, listed: Table, elsewhere: Container[str] = ()) -> list[str]:
    """The modules of `listed`, and after them all other ones of a package that assign a table of that name."""
    root = FILE.parent.parent.joinpath(*package.split("."))
    found = {".".join(path.relative_to(root).with_suffix("").parts) for path in root.rglob("*.py")
             if re.search(rf"^{name}\b", path.read_text(encoding="utf-8"), re.M)}
    return [*listed, *sorted(each for each in found if each not in listed and each not in elsewhere)]


def tables() -> dict[str, Table]:
    """All tables, from the modules."""
    keys = operators()
    special = {module.__name__.partition("._tensor.")[2] for module in installation.SPECIAL}
    return {"OPERATORS": keys, "OPERATOR_NAMES": operator_names(keys),
            "FUNCTIONS": {module: " ".join(_load("_tensor", module).__all__) for module in lazy_modules.FUNCTIONS},
            "METHODS": {module: methods(module) for module in _with_table(
                "_tensor", "METHODS", lazy_modules.METHODS, special)},
            "PRIMITIVES": {module: " ".join(_load("backends.numpy", module).PRIMITIVES)
                           for module in _with_table("backends.numpy", "PRIMITIVES", lazy_modules.PRIMITIVES)}}


def text() -> str:
    """The source of `flambeau/lazy_modules` with these tables."""
    result = FILE.read_text(encoding="utf-8")
    for name, table in tables().items():
        start = result.index(f"\n{name}: ")
        end = result.index("\n}\n", start) + 3
        lines = [f"\n{name}: dict[str, str] = {{"]
        for key, names in table.items():
            wrapped = textwrap.wrap(names, 112, break_on_hyphens=False)
            if len(names) + len(key) < 108:
                lines.append(f'    "{key}": "{names}",')
            else:
                lines += [f'    "{key}": """', *(f"        {line}" for line in wrapped), '    """,']
        result = result[:start] + "\n".join(lines) + "\n}\n" + result[end:]
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the tables")
    write, wanted = parser.parse_args().write, text()
    if FILE.read_text(encoding="utf-8") == wanted:
        return 0
    print(f"{FILE}: {'written' if write else 'differs'}")
    if write:
        FILE.write_text(wanted, encoding="utf-8")
    return int(not write)


if __name__ == "__main__":
    sys.exit(main())
