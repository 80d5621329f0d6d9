"""Each public name of `flambeau` is a name of PyTorch's `torch`, or a module listed here."""

from __future__ import annotations

import importlib
import inspect

import pytest

import flambeau
from flambeau import config

OWN_MODULES = {"accelerators", "c10d", "environment", "codegen", "compiler", "config", "devices", "dtypes", "engine",
               "functions", "functorch", "ir", "kernels", "modes", "ops", "runtime", "settings", "shapes", "switches",
               "trees", "version", "viz", "warning_location", "alias", "cli", "demo", "errors", "errstate",
               "interop", "lazy_modules", "module_finder", "variable_functions"}
IMPORTED = {"Any", "annotations"}


@pytest.mark.parametrize("name", ["gelu", "linalg_svd", "special_i1", "view", "cross_entropy", "fork_rng", "slice"])
def test_functions_of_other_namespaces_are_not_in_torch(name):
    assert not hasattr(flambeau, name)
    assert name not in dir(flambeau)


@pytest.mark.parity
def test_every_name_is_one_of_pytorch():
    torch = pytest.importorskip("torch")
    unknown = [name for name in dir(flambeau) if not name.startswith("_") and not hasattr(torch, name)]
    assert set(unknown) <= OWN_MODULES | IMPORTED
    assert all(inspect.ismodule(getattr(flambeau, name)) for name in set(unknown) & OWN_MODULES)


@pytest.mark.parity
def test_in_place_operators_are_functions_where_they_are_in_pytorch():
    torch = pytest.importorskip("torch")
    names = [name for name in dir(flambeau.Tensor) if name.endswith("_") and not name.startswith("_")]
    assert {name for name in names if hasattr(flambeau, name)} == {name for name in names if hasattr(torch, name)}


#: namespaces whose classes are looked at, and classes that have no place of PyTorch's: aliases, private bases, named
#: otherwise in PyTorch's own namespaces
NAMESPACES = ("", "nn", "nn.parameter", "optim", "optim.lr_scheduler", "autograd", "autograd.graph", "utils.data",
              "distributions", "distributions.transforms", "distributions.constraints", "utils.hooks", "func", "fx")
OTHERWISE = {"TensorBase", "PyTorchFileReader", "ScriptModule", "DispatchKey", "Future", "Block", "Graph", "Node",
             "Value", "JITException", "ScriptMethod", "ScriptObject", "CompilationUnit", "ScriptFunction",
             "UntypedStorage", "StorageBase"}


@pytest.mark.parity
@pytest.mark.parametrize("namespace", NAMESPACES)
def test_classes_are_in_the_modules_of_pytorch(namespace):
    pytest.importorskip("torch")
    theirs, mine = (importlib.import_module(f"{root}.{namespace}".rstrip(".")) for root in ("torch", "flambeau"))
    different = {}
    for name, cls in vars(theirs).items():
        own = getattr(mine, name, None) if isinstance(cls, type) and name not in OTHERWISE else None
        if isinstance(own, type) and cls.__module__.startswith("torch"):
            found = config.module_of(own)
            found = found if found.startswith("torch") else config.name_in_pytorch(found, own.__qualname__)
            if found != cls.__module__:
                different[name] = found, cls.__module__
    assert different == {}



@pytest.mark.parity
@pytest.mark.parametrize("space", ["", "Tensor"])
def test_functions_and_methods_are_named_as_in_pytorch(space):
    torch = pytest.importorskip("torch")
    mine, theirs = (getattr(module, space) if space else module for module in (flambeau, torch))
    named = {name: (getattr(mine, name), getattr(theirs, name, None)) for name in dir(mine)
             if not name.startswith(("_", "sym")) and not isinstance(getattr(theirs, name, None), type)}
    different = {name: own.__name__ for name, (own, other) in named.items() if callable(own)
                 and hasattr(own, "__name__") and hasattr(other, "__name__") and own.__name__ != other.__name__}
    assert set(different) <= {"get_device_module", "native_channel_shuffle", "to_dlpack"}
