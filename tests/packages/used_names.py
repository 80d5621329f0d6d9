"""Names of PyTorch that sources use and flambeau lacks: `python -m tests.packages.used_names FOLDER [-v]`.

A name is an import (`from torch.nn import Linear`) or an attribute of an imported module (`torch.nn.Linear`), in any
`.py` file below the folder, such as an environment's `site-packages`. PyTorch is the measure: a name that it lacks as
well belongs to another version. Left out is what a CPU build has no use for: `NAMES_LEFT_OUT`.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import types
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

#: parts of names that are not looked up
NAMES_LEFT_OUT = ("torch.ops", "torch._C", "torch.ao", ".cuda.", ".mps", ".xpu", "_inductor", "_triton", "_cslt",
                  "semi_structured", "SemiStructured")
#: folders of the library itself
_LIBRARIES = frozenset(("torch", "functorch", "torchgen", "flambeau"))


def names_in(source: str) -> Iterator[str]:
    """The dotted names below `torch` that a file's text uses."""
    tree = ast.parse(source)
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] == "torch":
            for each in node.names:
                if each.name != "*":
                    aliases[each.asname or each.name] = name = f"{node.module}.{each.name}"
                    yield name
        elif isinstance(node, ast.Import):
            for each in node.names:
                if each.name.partition(".")[0] == "torch":
                    aliases[each.asname or "torch"] = each.name if each.asname else "torch"
                    yield each.name
    for node in ast.walk(tree):
        parts: list[str] = []
        inner: ast.AST = node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if parts and isinstance(inner, ast.Name) and inner.id in aliases:
            yield ".".join([aliases[inner.id], *reversed(parts)])


def used_names(folder: Path) -> dict[str, set[str]]:
    """Name -> the packages below a folder that use it."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in folder.rglob("*.py"):
        package = path.relative_to(folder).parts[0].removesuffix(".py")
        if package in _LIBRARIES:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if "torch" not in text:
            continue
        try:
            for name in names_in(text):
                found[name].add(package)
        except (SyntaxError, ValueError):  # templates, other versions of Python
            continue
    return found


def missing_part(library: str, name: str) -> str | None:
    """The shortest beginning of a name that a library lacks; None where it has all, or a module cannot be imported.

    Attributes of other objects than modules and classes are not looked at.
    """
    parts = name.split(".")[1:]
    value: object = importlib.import_module(library)
    for at, part in enumerate(parts, 1):
        if not isinstance(value, (types.ModuleType, type)):
            return None
        path = ".".join([library, *parts[:at]])
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(path)
            except ModuleNotFoundError:
                return ".".join(["torch", *parts[:at]])
            except (ImportError, OSError, RuntimeError):
                return None
        except RuntimeError:  # a namespace of registered classes
            return None
    return None


def missing_names(folder: Path) -> dict[str, set[str]]:
    """Name that PyTorch has and flambeau lacks -> the packages that use it."""
    found: dict[str, set[str]] = defaultdict(set)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, packages in used_names(folder).items():
            if any(part in name for part in NAMES_LEFT_OUT):
                continue
            missing = missing_part("flambeau", name)
            if missing is not None and missing_part("torch", name) is None:
                found[missing] |= packages
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m tests.packages.used_names", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a folder of packages")
    parser.add_argument("-v", "--verbose", action="store_true", help="also print the packages that use each name")
    options = parser.parse_args()
    lacking = missing_names(options.folder)
    for name in sorted(lacking):
        print(name, *(sorted(lacking[name]) if options.verbose else ()))
    print(f"{len(lacking)} names are missing")
