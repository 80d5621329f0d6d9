"""The finder of modules gives what `importlib`'s finder gives, and never runs older bytecode."""

import importlib.util
import os
import pkgutil
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import flambeau
from flambeau.module_finder import BytecodeLoader, ModuleFinder

ROOT = Path(flambeau.__file__).parent.parent


def test_specifications_are_those_of_importlib():
    finder = ModuleFinder("flambeau")
    compared = 0
    for module in pkgutil.walk_packages(flambeau.__path__, "flambeau.", onerror=lambda name: None):
        path = sys.modules[module.name.rpartition(".")[0]].__path__ if module.name.count(".") > 1 else flambeau.__path__
        expected, found = PathFinder.find_spec(module.name, path), finder.find_spec(module.name, path)
        assert found.loader.__class__ is BytecodeLoader
        for attribute in ("name", "origin", "cached", "has_location", "parent", "submodule_search_locations"):
            assert getattr(found, attribute) == getattr(expected, attribute), (module.name, attribute)
        assert found.loader.get_source(module.name) == expected.loader.get_source(module.name)
        compared += 1
    assert compared > 500


def test_names_that_are_no_files_are_left_to_the_next_finder():
    finder = ModuleFinder("flambeau")
    assert finder.find_spec("flambeau.no_such_module", flambeau.__path__) is None
    assert finder.find_spec("flambeau", None) is None
    assert finder.find_spec("numpy.linalg", flambeau.__path__) is None
    assert importlib.util.find_spec("flambeau.no_such_module") is None


def _run(folder, program, **environment):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True,
                          env={**inherited, "PYTHONPATH": str(ROOT), **environment}).stdout.split()


def test_changed_sources_are_compiled_again(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    module = package / "module.py"
    program = ("import sys, flambeau.module_finder as m\nsys.meta_path.insert(0, m.ModuleFinder('package'))\n"
               "import package.module\nprint(package.module.value, package.module.__file__,"
               " package.module.__loader__.__class__.__name__)")
    for value in ("1", "22", "33"):  # of another size, and of the same size at another time
        module.write_text(f"value = {value}")
        if value == "33":
            os.utime(module, (1, 1))
        for _ in range(2):  # without bytecode, and with it
            assert _run(tmp_path, program) == [value, str(module), "BytecodeLoader"]
    bytecode, = (package / "__pycache__").glob("module.*")
    bytecode.write_bytes(bytecode.read_bytes()[:7])  # cut off, as after a full disk
    assert _run(tmp_path, program)[0] == "33"


def test_other_places_of_bytecode_are_respected(tmp_path):
    program = "import sys, flambeau\nprint(any(f.__class__.__name__ == 'ModuleFinder' for f in sys.meta_path))"
    assert _run(tmp_path, program) == ["True"]
    assert _run(tmp_path, program, PYTHONPYCACHEPREFIX=str(tmp_path)) == ["False"]
    assert _run(tmp_path, program, PYTHONOPTIMIZE="1") == ["False"]
