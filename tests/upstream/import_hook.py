"""Import resolution for test files: to flambeau, to a stub, or to a placeholder module."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace

from .placeholder import Placeholder, PlaceholderModule

_TESTING = "torch.testing._internal."

#: PyTorch's modules that flambeau lacks, and their stub in `stubs`
STUBS = {
    _TESTING + "common_utils": "common_utils",
    _TESTING + "common_device_type": "common_device_type",
    _TESTING + "common_dtype": "common_dtype",
    _TESTING + "common_cuda": "common_cuda",
    _TESTING + "common_methods_invocations": "common_methods_invocations",
    "common_utils": "functorch_common",
    "functorch": "functorch",
    "functorch.experimental": "functorch_experimental",
    "torch._C": "torch_c",
    "torch._C._functions": "torch_c_functions",
    "torch._C._autograd": "torch_c_autograd",
    "torch._functorch": "empty_package",
    "torch._functorch.vmap": "torch_pytree",
    "torch.testing._internal": "empty_package",
    "torch_npu": "torch_npu",
    "torch_npu.testing": "empty_package",
}

#: internal modules (packaging, compilers, other devices) without `_` in their names
_INTERNAL = {"torch.utils.cpp_extension", "torch.utils.flop_counter", "torch.npu", "torch.mps", "torch.xpu",
             "torch.accelerator", "torch_npu", "functorch.compile", "functorch"}

#: modules that are replaced also when the file runs on PyTorch (`--oracle`)
_ORACLE = {name for name in STUBS if name.startswith(_TESTING)} | {"common_utils", "torch_npu", "torch_npu.testing"}


def is_internal(name: str) -> bool:
    """Whether a dotted name is internal to PyTorch."""
    parts = name.split(".")
    return any(part.startswith("_") for part in parts) or any(
        ".".join(parts[:n]) in _INTERNAL for n in range(1, len(parts) + 1))


class _StubLoader(Loader):
    """A loader that returns a stub or a placeholder under the imported name."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec


class UpstreamFinder(MetaPathFinder):
    """The first finder; it leaves modules that flambeau has to the alias."""

    def __init__(self, oracle: bool) -> None:
        self.oracle = oracle

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        root = fullname.partition(".")[0]
        if self.oracle:
            if fullname in _ORACLE:
                return self._stub_spec(fullname)
            return None if root != "torch_npu" else self._placeholder_spec(fullname)
        if root == "torch":
            if self._flambeau_has(fullname):
                return None
        elif fullname not in STUBS and root not in ("torch_npu", "functorch"):
            return None
        return self._stub_spec(fullname) if fullname in STUBS else self._placeholder_spec(fullname)

    @staticmethod
    def _flambeau_has(fullname: str) -> bool:
        home = "flambeau" + fullname[len("torch"):]
        if home in sys.modules:
            return True
        try:
            return find_spec(home) is not None
        except (ModuleNotFoundError, AttributeError, ValueError):
            return False

    @staticmethod
    def _stub_spec(fullname: str) -> ModuleSpec:
        module = importlib.import_module(f"{__package__}.stubs.{STUBS[fullname]}")
        return ModuleSpec(fullname, _StubLoader(module), is_package=True)

    @staticmethod
    def _placeholder_spec(fullname: str) -> ModuleSpec:
        return ModuleSpec(fullname, _StubLoader(PlaceholderModule(fullname, is_internal(fullname))), is_package=True)


def install(oracle: bool = False) -> None:
    """Resolve imports of this process to flambeau and the stubs; with `oracle`, to PyTorch and the stubs."""
    if not oracle:
        import flambeau.alias

        flambeau.alias.install()
    import torch  # PyTorch imports parts of its test machinery: install the stubs afterwards

    for name in _ORACLE & set(sys.modules):
        del sys.modules[name]
    sys.meta_path.insert(0, UpstreamFinder(oracle))
    if not oracle:
        for name in ("_C", "_functorch", "testing"):
            if not hasattr(torch, name):
                setattr(torch, name, importlib.import_module(f"torch.{name}"))
        for name in ("mkldnn", "mps", "cuda", "cudnn"):
            if not hasattr(torch.backends, name):
                setattr(torch.backends, name, SimpleNamespace(is_available=lambda: False))
        if not hasattr(torch, "accelerator"):  # tests of a fork use it; replaced by the CPU
            torch.accelerator = SimpleNamespace(current_accelerator=lambda *args: torch.device("cpu"))
    npu = importlib.import_module("torch_npu").npu
    if not hasattr(torch, "npu"):
        torch.npu = npu


@contextlib.contextmanager
def placeholders() -> Iterator[None]:
    """While a file loads, names that flambeau lacks are placeholders instead of errors."""
    import torch

    names = vars(torch)
    own = names["__getattr__"]

    def get_or_placeholder(name: str) -> object:
        try:
            return own(name)
        except AttributeError:
            if name.startswith("__"):
                raise
            return Placeholder(f"torch.{name}", is_internal(f"torch.{name}"))

    names["__getattr__"] = get_or_placeholder
    try:
        yield
    finally:
        names["__getattr__"] = own


def look_up(module: str, name: str) -> object:
    """`from module import name`; a placeholder if it fails."""
    try:
        source = importlib.import_module(module)
    except ImportError:
        return Placeholder(f"{module}.{name}", is_internal(module))
    try:
        return getattr(source, name)
    except AttributeError:
        try:
            return importlib.import_module(f"{module}.{name}")
        except ImportError:
            return Placeholder(f"{module}.{name}", is_internal(f"{module}.{name}"))
