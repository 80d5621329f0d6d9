"""PyTorch's test machinery, `torch.testing._internal`, executed on flambeau from the installed PyTorch's source files.

Its tables of modules, optimizers and operators, its decorators and its base class of tests are plain programs of
`torch`. They are read where PyTorch is installed and run with the names that the finder resolves; nothing of them is
kept here.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import os
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from .placeholder import Placeholder
from .ranks import divide_worlds

#: modules, and all below them, whose source is taken from the installed PyTorch
PREFIXES = ("torch.testing._internal", "torch.testing._comparison", "torch.testing._utils", "torch.testing._creation",
            "torch._vendor")


@functools.cache
def _site() -> Path | None:
    """The folder that PyTorch is installed in; None where it is not, or where the stubs are asked for."""
    if "FLAMBEAU_UPSTREAM_STUBS" in os.environ:
        return None
    try:
        files = importlib.metadata.files("torch") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((Path(str(f.locate())).parents[1] for f in files if str(f) == "torch/__init__.py"), None)


def source_of(name: str) -> Path | None:
    """The source file of a module of the machinery; None if it is none, or if PyTorch is not installed."""
    site = _site()
    if site is None or not any(name == prefix or name.startswith(prefix + ".") for prefix in PREFIXES):
        return None
    stem = site.joinpath(*name.split("."))
    return next((path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.exists()), None)


def _getattr(owner: Any, name: str, *default: Any) -> Any:
    """`getattr`; a placeholder does not hide the default."""
    value = getattr(owner, name, *default)
    return default[0] if default and isinstance(value, Placeholder) else value


def _hasattr(owner: Any, name: str) -> bool:
    """`hasattr`; a placeholder does not count."""
    return hasattr(owner, name) and not isinstance(getattr(owner, name), Placeholder)


class MachineryLoader(Loader):
    """Executes the source file of a module of the machinery."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(self.path)
        vars(module).update(getattr=_getattr, hasattr=_hasattr)
        from .loading import execute

        execute(module, str(self.path), tolerant=True)
        if module.__name__ == "torch.testing._internal.common_utils":
            vars(module)["TEST_MKL"] = True  # of sparse products, Fourier transforms: flambeau has its own
        if module.__name__ == "torch.testing._internal.common_modules":
            _name_modules(module)
        if module.__name__ == "torch.testing._internal.distributed.multi_threaded_pg":
            divide_worlds(module)


def _name_modules(module: ModuleType) -> None:
    """Names of tests contain the classes' names in `torch.nn`, also where quantized modules are not there."""
    nn = importlib.import_module("torch.nn")
    for name in nn.modules.__all__:
        module.MODULE_CLASS_NAMES.setdefault(getattr(nn.modules, name), f"nn.{name}")


def spec_of(name: str) -> ModuleSpec | None:
    """The import specification of a module of the machinery."""
    path = source_of(name)
    return None if path is None else ModuleSpec(name, MachineryLoader(path), is_package=path.name == "__init__.py")


__all__ = ["PREFIXES", "MachineryLoader", "source_of", "spec_of"]
