"""Modules are imported by PyTorch's names, with and without the alias: one object for each."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import flambeau
from flambeau.backends.pytorch import MODULES as LIBRARIES
from flambeau.lazy_modules import pytorch_names


@pytest.mark.parametrize("name", sorted(pytorch_names.ALIASES))
def test_a_module_with_another_name_here_is_imported_by_pytorchs(name):
    module = importlib.import_module(f"flambeau.{name}")
    assert module is getattr(flambeau, name)
    assert module is importlib.import_module(f"flambeau.{pytorch_names.ALIASES[name]}")
    assert module.__spec__.name == module.__name__


@pytest.mark.parametrize("name", sorted(LIBRARIES))
def test_settings_of_libraries_are_modules(name):
    assert importlib.import_module(f"flambeau.backends.{name}") is getattr(flambeau.backends, name)


def test_modules_below_another_name_are_loaded_once():
    assert importlib.import_module("flambeau._dynamo.config") is flambeau._dynamo.config
    assert importlib.import_module("flambeau._functorch.vmap") is importlib.import_module(
        "flambeau.compiler.functorch.vmap")


@pytest.mark.parametrize("name", ["flambeau.no_such", "flambeau.utils.no_such", "flambeau.hub.no_such",
                                  "flambeau._dynamo.no_such", "flambeau.backends.no_such"])
def test_other_names_are_missing(name):
    with pytest.raises(ModuleNotFoundError, match=name.replace(".", r"\.")):
        importlib.import_module(name)


@pytest.mark.parametrize("arguments", [["-m", "flambeau", "run"], []], ids=["alias", "no alias"])
def test_statements_of_programs(arguments, tmp_path):
    library = "torch" if arguments else "flambeau"
    program = tmp_path / "program.py"
    program.write_text(f"import {library}.backends.cudnn as cudnn\nfrom {library}.hub import load_state_dict_from_url\n"
                       f"from {library}._utils import _flatten_dense_tensors\nimport {library}.utils.deterministic\n"
                       f"import {library}._dynamo.config\nfrom {library}.quantization import quantize_fx\n"
                       f"print(cudnn is {library}.backends.cudnn)\n")
    done = subprocess.run([sys.executable, *arguments, program], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
