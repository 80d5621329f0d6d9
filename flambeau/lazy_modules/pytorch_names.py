"""Import of modules by PyTorch's names where they have others here: `import flambeau.backends.cudnn`, `flambeau.hub`.

A module of PyTorch may be one of another package here (`flambeau.hub` is `flambeau.environment.hub`), or an attribute
of its package (`flambeau.backends.cudnn`). Each name gives the same module object.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any, ClassVar

_PACKAGE = __name__.partition(".")[0]

#: PyTorch's name of a module -> the name here
ALIASES = {
    **{name: f"accelerators.{name}" for name in ("accelerator", "cpu", "mps", "mtia", "xpu")},
    **{name: f"environment.{name}"
       for name in ("functional", "hub", "monitor", "torch_version", "types")},
    "futures": "runtime.futures", "__config__": "environment.build_config",
    "__future__": "environment.future_behavior",
    "_VF": "variable_functions", "_decomp": "export.decomp_registry", "_export": "export",
    "_jit_internal": "jit.internal",
    "_classes": "environment.script_classes", "classes": "environment.script_classes",
    "_lobpcg": "autograd.lobpcg", "_linalg_utils": "_tensor.linalg.bilinear_forms",
    "_lowrank": "_tensor.linalg.lowrank", "_compile": "compiler.api",
    "_guards": "_subclasses.guards", "_logging": "environment.logging",
    "_dynamo": "compiler.dynamo", "_functorch": "compiler.functorch", "_inductor": "compiler.inductor",
    "_tensor_str": "_tensor.printing", "_utils": "environment.shared_functions",
    "_vmap_internals": "func.legacy_vmap", "_utils_internal": "environment.company_builds",
    "_weights_only_unpickler": "serialization.unpickler_names",
    "quasirandom": "_tensor.creation.sobol",
    "return_types": "_tensor.return_types",
}

#: modules of PyTorch that are left out; their names exist (`environment.absent_modules`)
LEFT_OUT = frozenset((
    "ao", "numa", "package", "quantization",
))


class LoadedModule:
    """A loader that returns a module that is loaded already."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.spec = module.__spec__
        self.name = module.__name__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # the import system has replaced it by the alias's

    def get_code(self, fullname: str) -> CodeType | None:
        """The module's code, which `python -m torch.utils.collect_env` runs."""
        get_code = getattr(self.spec.loader, "get_code", None) if self.spec else None
        return get_code(self.name) if get_code is not None else None


def spec_of(fullname: str, module: ModuleType) -> ModuleSpec:
    """The spec by which `fullname` is imported as a module that is loaded already."""
    loader: Any = LoadedModule(module)  # its bases would be imported for their names only
    return ModuleSpec(fullname, loader, is_package=hasattr(module, "__path__"))


def has_other_name(fullname: str) -> bool:
    """Whether a name is, or is below, one of a module that has another name here."""
    if not fullname.startswith(_PACKAGE + "."):
        return False
    name = fullname.split(".", 2)[1]
    return name in ALIASES or name in LEFT_OUT


class OtherNames:
    """A finder, first in `sys.meta_path`, of modules that have another name here, and of what is below them.

    Below them it goes before the finder of paths, which would load the files once more, as other modules.
    """

    @staticmethod
    def find_spec(fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of such a module; None for any other name."""
        if not has_other_name(fullname):
            return None
        parent, _, child = fullname.rpartition(".")
        package = sys.modules[parent]
        module = getattr(package, child, None)
        if not isinstance(module, ModuleType):
            try:
                module = importlib.import_module(f"{package.__name__}.{child}")
            except ModuleNotFoundError:
                return None
        return spec_of(fullname, module)


class AttributesOfPackages:
    """A finder, last in `sys.meta_path`, of modules that are attributes of their package and no files in its folder."""

    pending: ClassVar[set[str]] = set()  # names whose package looks for a file of that name, in `__getattr__`

    @classmethod
    def find_spec(cls, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of such a module; None for any other name."""
        parent, _, child = fullname.rpartition(".")
        if not parent.startswith(_PACKAGE + ".") or fullname in cls.pending:
            return None
        cls.pending.add(fullname)
        try:
            module = getattr(sys.modules.get(parent), child, None)
        finally:
            cls.pending.discard(fullname)
        return spec_of(fullname, module) if isinstance(module, ModuleType) else None


def install() -> None:
    """Let modules be imported by PyTorch's names."""
    finders: list[Any] = sys.meta_path
    finders.insert(0, OtherNames)
    finders.append(AttributesOfPackages)
