"""Import resolution for test files: to flambeau, to a stub, or to a placeholder module."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

from . import machinery
from .answers import install_answers
from .placeholder import Placeholder, PlaceholderModule

_TESTING = "torch.testing._internal."

#: PyTorch's modules that flambeau lacks, and their stub in `stubs`
STUBS = {
    _TESTING + "common_utils": "common_utils",
    _TESTING + "common_device_type": "common_device_type",
    _TESTING + "common_dtype": "common_dtype",
    _TESTING + "common_nn": "common_nn",
    _TESTING + "common_cuda": "common_cuda",
    _TESTING + "common_methods_invocations": "common_methods_invocations",
    "common_utils": "functorch_common",
    "functorch": "functorch",
    "functorch.experimental": "functorch_experimental",
    "torch._C": "torch_c",
    "torch._C._functions": "torch_c_functions",
    "torch._C._autograd": "torch_c_autograd",
    "torch._functorch": "empty_package",
    "torch._logging": "empty_package",
    "torch._logging.scribe": "scribe",
    "torch._functorch.vmap": "torch_pytree",
    "torch.testing._internal": "empty_package",
    "torch_npu": "torch_npu",
    "torch_npu.testing": "empty_package",
}

#: internal modules (packaging, compilers, other devices) without `_` in their names
_INTERNAL = {"torch.utils.cpp_extension", "torch.utils.flop_counter", "torch.npu", "torch.mps", "torch.xpu",
             "torch.accelerator", "torch_npu", "functorch.compile", "functorch"}

#: decorators for other devices that later machinery does not have
_FOR_OTHER_DEVICES = {"skipIfMps", "skipXLA", "skipLazy"}

#: modules that are replaced also when the file runs on PyTorch (`--oracle`)
_ORACLE = {"common_utils", "torch_npu", "torch_npu.testing"}


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
        if (spec := machinery.spec_of(fullname)) is not None:
            return spec
        if fullname in STUBS and fullname.startswith(_TESTING):
            return self._stub_spec(fullname)
        if root in ("torch", "functorch"):
            if self._flambeau_has(fullname):
                return None
        elif fullname not in STUBS and root != "torch_npu":
            return None
        return self._stub_spec(fullname) if fullname in STUBS else self._placeholder_spec(fullname)

    @staticmethod
    def _flambeau_has(fullname: str) -> bool:
        from flambeau.alias import flambeau_module

        name = fullname if fullname.startswith("torch.") else f"torch.{fullname}"
        return fullname == "torch" or flambeau_module(name) is not None

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
        install_answers()
        if machinery.source_of("torch.testing._utils") is not None:
            importlib.import_module("torch.testing._utils")  # an attribute of torch.testing that nothing imports
        _extend_extension(importlib.import_module("torch._C"))
        for name in ("mkldnn", "mps", "cuda", "cudnn"):
            if not hasattr(torch.backends, name):
                setattr(torch.backends, name, SimpleNamespace(is_available=lambda: False))
        if not hasattr(torch, "accelerator"):  # tests of a fork use it; replaced by the CPU
            torch.accelerator = SimpleNamespace(current_accelerator=lambda *args: torch.device("cpu"))
    npu = importlib.import_module("torch_npu").npu
    if not hasattr(torch, "npu"):
        torch.npu = npu


def _extend_extension(module: ModuleType) -> None:
    """Names that `torch._C` lacks here are taken from the stub, whose other names are placeholders."""
    own, stub = vars(module)["__getattr__"], importlib.import_module(f"{__package__}.stubs.torch_c")

    asked: set[str] = set()

    def get(name: str) -> object:
        try:
            return own(name)
        except AttributeError:
            if name in asked:  # the stub imports it as a module, and the import looks it up here
                raise
            asked.add(name)
            try:
                return getattr(stub, name)
            finally:
                asked.discard(name)

    vars(module)["__getattr__"] = get


@contextlib.contextmanager
def placeholders() -> Iterator[None]:
    """While a file loads, names that flambeau lacks are placeholders instead of errors; with `--oracle`, none are."""
    import torch

    if os.environ.get("FLAMBEAU_UPSTREAM") == "oracle":
        yield
        return
    with contextlib.ExitStack() as stack:
        stack.enter_context(_placeholders_of(torch, "torch"))
        stack.enter_context(_placeholders_of(torch.ops.aten, "torch.ops.aten"))
        stack.enter_context(_placeholders_of(type(torch.ops.prims), "torch.ops.prims"))
        yield


@contextlib.contextmanager
def _placeholders_of(owner: Any, path: str) -> Iterator[None]:
    own = vars(owner)["__getattr__"]

    def get_or_placeholder(*args: Any) -> object:
        name = args[-1]  # of a module or of an instance
        try:
            return own(*args)
        except AttributeError:
            if name.startswith("__"):
                raise
            return Placeholder(f"{path}.{name}", is_internal(f"{path}.{name}"))

    owner.__getattr__ = get_or_placeholder
    try:
        yield
    finally:
        owner.__getattr__ = own


def look_up(module: str, name: str) -> object:
    """`from module import name`; a placeholder if it fails."""
    try:
        source = importlib.import_module(module)
    except ImportError:
        return Placeholder(f"{module}.{name}", is_internal(module))
    try:
        return getattr(source, name)
    except AttributeError:
        if name in _FOR_OTHER_DEVICES:
            return lambda test: test
        try:
            return importlib.import_module(f"{module}.{name}")
        except ImportError:
            return Placeholder(f"{module}.{name}", is_internal(f"{module}.{name}"))
