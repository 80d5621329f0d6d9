"""`import torch` means flambeau: an import hook that hands out flambeau's own modules.

    import flambeau.alias
    flambeau.alias.install()
    import torch.nn as nn          # the very module flambeau.nn

`torch.x.y` is `flambeau.x.y`, the same object, so that nothing exists twice. What
flambeau does not have raises ModuleNotFoundError and says so. The prefix of printed
dtypes follows the alias (`torch.float32`), and so does `__version__`, which programs
compare with PyTorch's: it names the version of PyTorch that flambeau models, with
flambeau's own behind it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType, TracebackType

from . import config
from .version import __version__

PYTORCH = "2.13.0"  # what flambeau models

_ALIAS, _HOME = "torch", __name__.rpartition(".")[0]


class TorchFinder(MetaPathFinder):
    """Finds `torch` and `torch.*` among flambeau's modules; stands first in `sys.meta_path`."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of an aliased module, None for any other name."""
        if fullname.partition(".")[0] == "functorch":  # a package of its own beside torch
            module = _flambeau_module(f"{_ALIAS}.{fullname}")
        elif fullname == _ALIAS or fullname.startswith(_ALIAS + "."):
            module = _flambeau_module(fullname)
        else:
            return None
        if module is None:
            raise ModuleNotFoundError(f"flambeau has no module {_home_name(fullname)!r}, which {fullname!r} "
                                      "stands for while torch means flambeau", name=fullname)
        return ModuleSpec(fullname, _Loader(module), is_package=hasattr(module, "__path__"))


class _Loader(Loader):
    """Hands the import system a module that is loaded already."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # the import system has just put the alias's there


def _home_name(fullname: str) -> str:
    return _HOME + fullname[len(_ALIAS):]


def _flambeau_module(fullname: str) -> ModuleType | None:
    """The flambeau module that an alias stands for, or None where there is none."""
    home = _home_name(fullname)
    if home in sys.modules:
        return sys.modules[home]
    parent, _, child = home.rpartition(".")
    if parent:
        found = _flambeau_module(fullname.rpartition(".")[0])
        if found is None:
            return None
        attribute = getattr(found, child, None)
        if isinstance(attribute, ModuleType):
            return attribute
        home = f"{found.__name__}.{child}"  # where it lies, which may be elsewhere than PyTorch's name says
        if not hasattr(found, "__path__") or find_spec(home) is None:
            return None
    return importlib.import_module(home)


_finder: TorchFinder | None = None


def install() -> None:
    """Make `import torch`, `import torch.nn`, `from torch.optim import SGD` ... give flambeau.

    Installing twice changes nothing.

    Raises:
        RuntimeError: PyTorch itself is imported already in this process.
    """
    global _finder
    if _finder is not None:
        return
    home = importlib.import_module(_HOME)
    present = sys.modules.get(_ALIAS)
    if present is not None and present is not home:
        raise RuntimeError("torch is imported already, and it is not flambeau: "
                           "install the alias before the first `import torch`")
    _finder = TorchFinder()
    sys.meta_path.insert(0, _finder)
    config.module_name = _ALIAS
    vars(home)["__version__"] = f"{PYTORCH}+flambeau.{__version__}"


def uninstall() -> None:
    """Let `torch` mean PyTorch again for imports to come; modules already handed out stay flambeau's."""
    global _finder
    if _finder is None:
        return
    sys.meta_path.remove(_finder)
    _finder = None
    for name in [name for name in sys.modules if name.partition(".")[0] in (_ALIAS, "functorch")]:
        del sys.modules[name]
    config.module_name = _HOME
    vars(importlib.import_module(_HOME))["__version__"] = __version__


class alias:
    """A block in which `torch` means flambeau.

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
