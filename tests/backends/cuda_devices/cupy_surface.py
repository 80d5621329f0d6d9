"""What CuPy has: names and parameters of what flambeau calls, read from CuPy's sources without importing it.

`python -m tests.backends.cuda_devices.cupy_surface DIRECTORY` reads the sources of a CuPy release (a checkout of the
tag, or an unpacked sdist) and writes `cupy_surface.json`. A name that CuPy lacks ends it.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from pathlib import Path

HERE = Path(__file__).parent
SURFACE = HERE / "cupy_surface.json"
PACKAGE = HERE.parents[2] / "flambeau" / "backends" / "cuda_devices"

#: expressions of flambeau's sources -> what they are
_ROOTS = {
    "cupy": "cupy", "self.cupy": "cupy", "cuda": "cupy.cuda", "self.cuda": "cupy.cuda", "self._cuda": "cupy.cuda",
    "api": "cupy.cuda.runtime", "self.api": "cupy.cuda.runtime",
    "driver": "cupy.cuda.driver", "self.cuda.driver": "cupy.cuda.driver",
    "stream": "cupy.cuda.Stream", "its": "cupy.cuda.Stream",
    "event": "cupy.cuda.Event", "point.event": "cupy.cuda.Event", "module": "cupy.cuda.Module",
    "function": "cupy.cuda.Function", "graph": "cupy.cuda.Graph",
    "graph[0]": "cupy.cuda.Graph", "self.cuda.Stream": "cupy.cuda.Stream",
}
#: where the sources define what is in a namespace
_FILES = {
    "cupy.cuda.runtime": ("cupy_backends/cuda/api/runtime.pyx", "cupy_backends/cuda/api/_runtime_enum.pxd",
                          "cupy_backends/cuda/api/runtime.pxd"),
    "cupy.cuda.driver": ("cupy_backends/cuda/api/driver.pyx", "cupy_backends/cuda/api/_driver_enum.pxd"),
    "cupy.cuda.Device": ("cupy/cuda/device.pyx", "cupy/cuda/device.pxd"),
    "cupy.cuda.Stream": ("cupy/cuda/stream.pyx",), "cupy.cuda.Event": ("cupy/cuda/stream.pyx",),
    "cupy.cuda.Graph": ("cupy/cuda/graph.pyx", "cupy/cuda/graph.pxd"),
    "cupy.cuda.Module": ("cupy/cuda/function.pyx", "cupy/cuda/function.pxd"),
    "cupy.cuda.Function": ("cupy/cuda/function.pyx", "cupy/cuda/function.pxd"),
}
_CLASSES = {"Device", "Stream", "Event", "Graph", "Module", "Function"}


def used_names() -> dict[str, int | None]:
    """The names of CuPy's that flambeau's sources use -> the number of arguments that a call gives, if it is called."""
    found: dict[str, int | None] = {}
    for path in sorted(PACKAGE.glob("cupy_*.py")):
        tree = ast.parse(path.read_text())
        calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in _ROOTS:
                name = f"{_ROOTS[ast.unparse(node.value)]}.{node.attr}"
                call = calls.get(id(node))
                if name == "cupy.cuda":
                    continue
                count = None if call is None else len(call.args) + len(call.keywords)
                found[name] = count if found.get(name) is None else max(found[name] or 0, count or 0)
            elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "found" and (
                    isinstance(node.slice, ast.Constant)):
                found.setdefault(f"cupy.cuda.runtime.getDeviceProperties.{node.slice.value}", None)
    return found


def _parameters(text: str) -> list[str]:
    """The parameter names of a Cython signature."""
    depth, parts, part = 0, [], ""
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            parts.append(part)
            part = ""
        else:
            part += letter
    names = [re.split(r"\s+", each.split("=")[0].split(":")[0].strip())[-1] for each in [*parts, part] if each.strip()]
    return [name for name in names if name not in ("self", "cls")]


def _definition(source: str, name: str) -> list[str] | None:
    """The parameters of a function; None where there is none of the name."""
    match = re.search(rf"^\s*(?:cpdef|def)\s+(?:inline\s+)?(?:[\w.]+\s+)*?{name}\s*\((.*?)\)\s*"
                      r"(?:except[^:\n]*)?(?:->[^:]*)?:", source, re.DOTALL | re.MULTILINE)
    return None if match is None else _parameters(match.group(1))


def _class_of(source: str, name: str, bases: bool = True) -> str:
    """The body of a class, and of its base class."""
    match = re.search(rf"^(?:cdef )?class {name}\b(.*?):\n(.*?)(?=^\S)", f"{source}\n#", re.DOTALL | re.MULTILINE)
    if match is None:
        return ""
    base = re.search(r"\((_\w+)\)", match.group(1))
    return match.group(2) + (_class_of(source, base.group(1)) if base and bases else "")


def describe(directory: Path, name: str) -> list[str] | None:
    """The parameters of something of CuPy's; None for what is no function.

    Raises:
        LookupError: CuPy has no such thing.
    """
    space, _, last = name.rpartition(".")
    files = _FILES.get(name if last in _CLASSES else space, ())
    sources = [(directory / each).read_text() for each in files]
    if last in _CLASSES:
        for source in sources:
            found = _definition(_class_of(source, last, bases=False), "__init__")
            if found is not None:
                return found
        return []
    short = space.rpartition(".")[2]
    if short == "getDeviceProperties":
        source = (directory / "cupy_backends/cuda/api/runtime.pyx").read_text()
        if re.search(rf"'{last}'(:|\] =)", source):
            return None
        raise LookupError(f"CuPy's properties of devices have no {last}")
    for source in sources:
        body = _class_of(source, short) if short in _CLASSES else source
        found = _definition(body, last)
        if found is not None:
            is_property = re.search(rf"@property\s+def {last}\b", body)
            return None if is_property else found
        if re.search(rf"\b{last}\b\s*(=|$|#)|self\.{last}\s*=|class {last}\b|^\s+(?:readonly|public)[^\n]*\b{last}\b",
                     body, re.MULTILINE):
            return None
    if space in ("cupy", "cupy.cuda"):
        package = (directory / space.replace(".", "/") / "__init__.py").read_text()
        if re.search(rf"import {last}\b|def {last}\(|key == '{last}'", package):
            for file in ("stream.pyx", "device.pyx", "pinned_memory.pyx"):
                found = _definition((directory / "cupy/cuda" / file).read_text(), last)
                if found is not None:
                    return found
            return None
    raise LookupError(f"CuPy has no {name}")


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="CuPy's sources")
    directory = parser.parse_args().directory
    version = re.search(r"'(.*)'", (directory / "cupy/_version.py").read_text())
    assert version is not None
    names = {*used_names(), *(f"cupy.cuda.{each}" for each in _CLASSES), "cupy.cuda.Function.__call__"}
    surface = {"version": version.group(1), "names": {name: describe(directory, name) for name in sorted(names)}}
    SURFACE.write_text(json.dumps(surface, indent=1) + "\n")
    print(len(names), "names")


if __name__ == "__main__":
    main()
