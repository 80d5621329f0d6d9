"""The `torch` alias: an import hook that resolves `import torch` to flambeau's modules.

    import flambeau.alias
    flambeau.alias.install()
    import torch.nn as nn          # the module object flambeau.nn

`torch.x.y` and `flambeau.x.y` are one module object: there are no copies of classes or state. Importing a module that
flambeau lacks raises ModuleNotFoundError. While the alias is installed, dtypes and classes print with the prefix
`torch.`, classes with the module in which PyTorch has them (see `config`), the package's `__name__` is "torch", and its
`__version__` is the version of PyTorch that flambeau models, followed by flambeau's own, because programs compare them.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from types import ModuleType, TracebackType

from .. import config
from ..environment.torch_version import TorchVersion
from ..lazy_modules import pytorch_names
from ..version import __version__

PYTORCH = "2.13.0"  # the version that flambeau models

_ALIAS, _PACKAGE = "torch", __name__.rpartition(".")[0]


class TorchFinder(MetaPathFinder):
    """A finder for `torch`, `torch.*` and `functorch`, first in `sys.meta_path`.

    It finds modules of flambeau, too: the names of their classes change when they are imported.
    """

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of an aliased module; None for any other name.

        Raises:
            ModuleNotFoundError: flambeau has no such module.
        """
        if fullname.partition(".")[0] == "functorch":  # a top-level package of PyTorch's
            module = flambeau_module(f"{_ALIAS}.{fullname}")
        elif fullname == _ALIAS or fullname.startswith(_ALIAS + "."):
            module = flambeau_module(fullname)
        elif fullname.startswith(_PACKAGE + ".") and not pytorch_names.has_other_name(fullname):
            return _renaming_spec(fullname, path, target)
        else:
            return None
        if module is None:
            raise ModuleNotFoundError(f"flambeau has no module {_target_name(fullname)!r}, which {fullname!r} "
                                      "stands for while torch means flambeau", name=fullname)
        # `_rename` has put it there while it was imported; the import system would take its spec instead of this one
        sys.modules.pop(fullname, None)
        return pytorch_names.spec_of(fullname, module)


class _RenamingLoader(SourceFileLoader):
    """A loader of flambeau's modules that names their classes as PyTorch does."""

    def exec_module(self, module: ModuleType) -> None:
        if _finder is None:
            super().exec_module(module)
            return
        # modules that import each other find it by the package's `__name__`, which is "torch" now
        name = _ALIAS + module.__name__[len(_PACKAGE):]
        added = sys.modules.setdefault(name, module) is module
        try:
            super().exec_module(module)
        except BaseException:
            if added:
                sys.modules.pop(name, None)
            raise
        _rename(module)


def _renaming_spec(fullname: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
    spec = PathFinder.find_spec(fullname, path, target)
    if spec is not None and type(spec.loader) is SourceFileLoader:
        spec.loader = _RenamingLoader(spec.loader.name, spec.loader.path)
    return spec


def _rename(module: ModuleType) -> None:
    if _finder is None:
        return  # uninstalled while the module was imported
    config.name_as_pytorch(module)
    # `inspect` and `typing` look for the modules of classes here
    sys.modules.setdefault(_ALIAS + module.__name__[len(_PACKAGE):], module)


def _target_name(fullname: str) -> str:
    return _PACKAGE + fullname[len(_ALIAS):]


def flambeau_module(fullname: str) -> ModuleType | None:
    """The flambeau module of an aliased name; None if there is none."""
    target = _target_name(fullname)
    if target in sys.modules:
        return sys.modules[target]
    parent, _, child = target.rpartition(".")
    if parent:
        package = flambeau_module(fullname.rpartition(".")[0])
        if package is None:
            return None
        attribute = getattr(package, child, None)
        if isinstance(attribute, ModuleType):
            return attribute
        home = _PACKAGE if package.__name__ == _ALIAS else package.__name__
        target = f"{home}.{child}"  # may differ from PyTorch's name: see `pytorch_names.ALIASES`
        if not hasattr(package, "__path__") or not target.startswith(f"{_PACKAGE}.") or find_spec(target) is None:
            return None  # modules that are left out exist under PyTorch's name only
    return importlib.import_module(target)


_finder: TorchFinder | None = None


def install() -> None:
    """Resolve `import torch`, `import torch.nn`, `from torch.optim import SGD`, ... to flambeau.

    A second call has no effect.

    Raises:
        RuntimeError: PyTorch itself is already imported in this process.
    """
    global _finder
    if _finder is not None:
        return
    package = importlib.import_module(_PACKAGE)
    present = sys.modules.get(_ALIAS)
    if present is not None and present is not package:
        raise RuntimeError("torch is imported already, and it is not flambeau: "
                           "install the alias before the first `import torch`")
    _finder = TorchFinder()
    sys.meta_path.insert(0, _finder)
    config.module_name = _ALIAS
    config.prepare_child = install
    config.name_as_pytorch(package)
    for name, module in sorted(sys.modules.items()):
        if name.startswith(_PACKAGE + "."):
            _rename(module)
    vars(package).update(__name__=_ALIAS, __version__=TorchVersion(f"{PYTORCH}+flambeau.{__version__}"))


def uninstall() -> None:
    """Resolve later imports of `torch` to PyTorch again. Modules imported before remain flambeau's."""
    global _finder
    if _finder is None:
        return
    sys.meta_path.remove(_finder)
    _finder = None
    for name in [name for name in sys.modules if name.partition(".")[0] in (_ALIAS, "functorch")]:
        del sys.modules[name]
    config.module_name = _PACKAGE
    config.prepare_child = None
    config.name_as_defined()
    vars(importlib.import_module(_PACKAGE)).update(__name__=_PACKAGE, __version__=__version__)


class alias:
    """A context manager that installs the alias, and uninstalls it at exit unless it was installed before.

    >>> from flambeau.alias import alias
    >>> import sys
    >>> "torch" in sys.modules  # doctest: +SKIP
    False
    >>> with alias():  # doctest: +SKIP
    ...     import torch.nn as nn
    >>> nn.__name__  # doctest: +SKIP
    'flambeau.nn'
    """

    def __enter__(self) -> None:
        self.nested = _finder is not None
        install()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if not self.nested:
            uninstall()
