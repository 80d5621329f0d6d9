"""Private names of PyTorch that its test machinery asks, with the answers of a build for the CPU alone."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

from flambeau.dtypes import dtype

from .placeholder import Missing, PlaceholderModule


class AbsentDtype(dtype):
    """A dtype that flambeau lacks: it can be listed and named, a tensor of it fails the test."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        self.name = self.legacy = self.scalar_name = name
        self.category, self.rank, self.is_signed = 0, 0, True
        self.is_complex, self.is_floating_point = False, name.startswith("float")

    def __getattribute__(self, name: str) -> Any:
        if name in ("numpy", "itemsize"):
            raise Missing(f"torch.{self.name} is not there")
        return super().__getattribute__(name)


#: the dtypes of PyTorch that flambeau lacks
ABSENT_DTYPES = ("float4_e2m1fn_x2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
                 "float8_e8m0fnu", "qint8", "qint32", "quint8", "quint2x4", "quint4x2", "bits1x8", "bits2x4", "bits4x2",
                 "bits8", "bits16", *(f"int{n}" for n in range(1, 8)), *(f"uint{n}" for n in range(1, 8)))


def _no(*args: Any, **kwargs: Any) -> bool:
    return False


def _nothing(*args: Any, **kwargs: Any) -> None:
    pass


def _storages(tree: Any) -> set[int]:
    torch = importlib.import_module("torch")
    leaves = importlib.import_module("torch.utils._pytree").tree_leaves(tree)
    return {torch._C._storage_address(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor)}


def _outputs_alias_inputs(outputs: Any, inputs: Any) -> bool:
    """`torch._subclasses.fake_utils.outputs_alias_inputs`: whether a result shares the storage of an argument."""
    return not _storages(outputs).isdisjoint(_storages(inputs))


#: names by module
ANSWERS: dict[str, dict[str, Any]] = {
    "torch": {"_is_functional_tensor": _no, **{name: AbsentDtype(name) for name in ABSENT_DTYPES}},
    "torch._C": {"_DisableFuncTorch": contextlib.nullcontext,
                 **dict.fromkeys(("_jit_set_emit_hooks", "_jit_clear_class_registry",
                                  "_debug_only_display_vmap_fallback_warnings",
                                  "_set_print_stack_traces_on_fatal_signal"), _nothing),
                 "_debug_only_are_vmap_fallback_warnings_enabled": _no,
                 "_jit_get_emit_hooks": lambda: (None, None)},
    "torch._C._distributed_c10d": {"_set_thread_isolation_mode": _nothing},
    "torch.backends": {"python_native": SimpleNamespace(available_dsls=[], all_dsls=["cutedsl", "triton"])},
    "torch._utils": {"_is_privateuse1_backend_available": _no},
}


def install_answers() -> None:
    """Set the names that flambeau lacks."""
    for name, values in ANSWERS.items():
        with contextlib.suppress(ImportError):
            module = importlib.import_module(name)
            for key, value in values.items():
                if not hasattr(module, key):
                    setattr(module, key, value)
    propagation: Any = ModuleType("torch.distributed.tensor._sharding_prop")
    propagation.ShardingPropagator = SimpleNamespace(_fake_mode_lock=contextlib.nullcontext())  # replaced for threads
    sys.modules[propagation.__name__] = propagation
    torch = importlib.import_module("torch")
    paths: Any = PlaceholderModule("torch._utils_internal", internal=True)
    paths.get_file_path_2 = os.path.join
    sys.modules[paths.__name__] = paths
    compared: Any = importlib.import_module("torch._subclasses.fake_utils")
    compared.outputs_alias_inputs = _outputs_alias_inputs
    torch.jit._recursive.ConcreteTypeStore = SimpleNamespace  # tests of TorchScript empty its caches at their end
    if not hasattr(torch.jit, "_state"):
        torch.jit._state = SimpleNamespace(_clear_class_state=_nothing)
    load = torch.ops.load_library

    def load_library(path: Any) -> None:
        """PyTorch's own test library is passed over: tests that use its operators fail at them."""
        if not str(path).endswith("libtorchbind_test.so"):
            load(path)

    torch.ops.load_library = load_library
