"""Private names of PyTorch that its test machinery asks, with the answers of a build for the CPU alone."""

from __future__ import annotations

import contextlib
import importlib
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
    "torch._logging": {"_init_logs": _nothing},
    "torch._utils": {"_is_privateuse1_backend_available": _no},
}


def _ready(compile_fx: Any) -> Any:
    """`compile_fx` of a function whose program is there: tests call it once, and the first calls would be eager."""
    torch = importlib.import_module("torch")

    def compile_and_warm_up(model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        compiled = compile_fx(model, inputs, *args, **kwargs)
        generator, grad_mode = torch.get_rng_state(), torch.is_grad_enabled()
        buffers = {name: each.detach().clone() for name, each in getattr(model, "named_buffers", dict)()}
        for _ in range(2):
            compiled(*[_copy(each) for each in inputs])
        for name, each in getattr(model, "named_buffers", dict)():
            each.data = buffers[name]
        torch.set_rng_state(generator)
        torch.set_grad_enabled(grad_mode)
        return compiled

    return compile_and_warm_up


def _copy(value: Any) -> Any:
    """A copy of a tensor with its strides."""
    torch = importlib.import_module("torch")
    if not isinstance(value, torch.Tensor):
        return value
    with torch.no_grad():
        copied = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
        if 0 not in value.stride():
            copied.copy_(value)
        else:
            copied = value.clone()
    return copied.requires_grad_(value.requires_grad)


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
    inductor: Any = importlib.import_module("torch._inductor")
    inductor.metrics = PlaceholderModule("torch._inductor.metrics", internal=True)  # tests reset its counters
    inductor.metrics.reset = _nothing
    sys.modules[inductor.metrics.__name__] = inductor.metrics
    lowering: Any = importlib.import_module("torch._inductor.compile_fx")
    lowering.compile_fx = _ready(lowering.compile_fx)
    log_state: Any = PlaceholderModule("torch._logging._internal", internal=True)
    log_state.log_state = SimpleNamespace(clear=_nothing)
    log_state._init_logs = log_state._reset_logs = _nothing
    torch._logging._internal = log_state
    sys.modules[log_state.__name__] = log_state
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
