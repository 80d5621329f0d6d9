"""The distribution `torch` that makes `import torch` mean flambeau in an environment: `flambeau alias install`.

It consists of the packages `torch` and `functorch`, whose only statement installs the alias, and of metadata, so that
package managers see a requirement of torch satisfied. `pip uninstall torch` removes it as well.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import importlib.util
import shutil
import sysconfig
from pathlib import Path

from ..version import __version__
from . import PYTORCH

VERSION = f"{PYTORCH}+flambeau"

_MODULES = ("torch", "functorch")

_PACKAGE = '''\
"""{name} means flambeau here. `flambeau alias install` wrote this package; `flambeau alias remove` deletes it."""

import sys

try:
    import flambeau
except ModuleNotFoundError as error:
    if error.name != "flambeau":
        raise
    raise ImportError("torch stands for flambeau in this environment, and flambeau is not installed: "
                      "pip install flambeau, or pip uninstall torch") from error

{statements}
'''

_TORCH = '''\
sys.modules[__name__] = flambeau

from flambeau import alias

alias.install()'''

_FUNCTORCH = '''\
import torch

sys.modules[__name__] = torch.functorch'''

_METADATA = f"""\
Metadata-Version: 2.1
Name: torch
Version: {VERSION}
Summary: import torch means flambeau
Requires-Python: >=3.11
Requires-Dist: flambeau
"""

_WHEEL = """\
Wheel-Version: 1.0
Generator: flambeau
Root-Is-Purelib: true
Tag: py3-none-any
"""

_FOLDER = f"torch-{VERSION}.dist-info"

#: path below site-packages -> text
_FILES = {
    "torch/__init__.py": _PACKAGE.format(name="torch", statements=_TORCH),
    "functorch/__init__.py": _PACKAGE.format(name="functorch", statements=_FUNCTORCH),
    f"{_FOLDER}/METADATA": _METADATA,
    f"{_FOLDER}/WHEEL": _WHEEL,
    f"{_FOLDER}/INSTALLER": "flambeau\n",
    f"{_FOLDER}/top_level.txt": "torch\nfunctorch\n",
}


class AliasError(Exception):
    """The alias cannot be installed or removed."""


def site_packages() -> Path:
    """The directory into which the current environment installs packages."""
    return Path(sysconfig.get_path("purelib"))


def _record() -> str:
    lines = []
    for path, text in _FILES.items():
        data = text.encode()
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(data)}\n")
    return "".join([*lines, f"{_FOLDER}/RECORD,,\n"])


def _distribution() -> importlib.metadata.Distribution | None:
    """The distribution `torch` that the current environment has."""
    return next(iter(importlib.metadata.distributions(name="torch")), None)


def _is_ours(distribution: importlib.metadata.Distribution) -> bool:
    return (distribution.read_text("INSTALLER") or "").strip() == "flambeau"


def _module(name: str) -> Path | None:
    """The file that an import of `name` would run; None if there is none."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        return None
    places = [spec.origin, *(spec.submodule_search_locations or ())]
    return next((Path(place) for place in places if place), None)


def _is_alias(module: Path) -> bool:
    return module.is_file() and "`flambeau alias install` wrote this" in module.read_text(encoding="utf-8")


def install() -> Path:
    """Write the distribution `torch` into the current environment. A second call writes it anew.

    Returns:
        The directory that it is in.

    Raises:
        AliasError: the environment has PyTorch or another module of that name, or its directory is not writable.
    """
    present = _distribution()
    if present is not None and not _is_ours(present):
        raise AliasError(f"PyTorch {present.version} is installed here ({present.locate_file('torch')}): "
                         "pip uninstall torch, or use another environment")
    for name in _MODULES:
        module = _module(name)
        if module is not None and not _is_alias(module):
            raise AliasError(f"there is a module {name} here already: {module}")
    if present is not None:
        remove()
    root = site_packages()
    try:
        for path, text in {**_FILES, f"{_FOLDER}/RECORD": _record()}.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        _delete(root, _FOLDER)
        raise AliasError(f"cannot write to {root}: {error}") from error
    importlib.invalidate_caches()
    return root


def _delete(root: Path, metadata: str) -> None:
    for folder in (*_MODULES, metadata):
        shutil.rmtree(root / folder, ignore_errors=True)


def remove() -> Path:
    """Delete the distribution that `install` wrote.

    Returns:
        The directory that it was in.

    Raises:
        AliasError: it is not installed, or cannot be deleted.
    """
    present = _distribution()
    if present is None or not _is_ours(present):
        raise AliasError("the alias is not installed in this environment")
    root = Path(str(present.locate_file("")))
    _delete(root, f"torch-{present.version}.dist-info")
    importlib.invalidate_caches()
    if (left := _distribution()) is not None and _is_ours(left):
        raise AliasError(f"cannot delete {root / 'torch'}")
    return root


def status() -> tuple[bool, str]:
    """Whether `import torch` means flambeau in the current environment, and a sentence that says what it means."""
    module = _module("torch")
    if module is None:
        return False, "torch is not installed; `flambeau alias install` makes `import torch` mean flambeau"
    if _is_alias(module):
        return True, f"import torch means flambeau {__version__}, as PyTorch {PYTORCH} ({module.parent})"
    present = _distribution()
    if present is None:
        return False, f"import torch means a module that is no installed distribution ({module})"
    return False, f"import torch means PyTorch {present.version} ({module.parent})"
