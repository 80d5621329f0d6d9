"""More names of `torch._C` that programs import: state that they ask for, switches of TorchScript without effect."""

from __future__ import annotations

import importlib
import sys
import warnings
import weakref
from types import ModuleType
from typing import Any

from .. import devices, dtypes
from .._library.autograd_fallback import get_autograd_fallback_mode as _get_autograd_fallback_mode
from .._library.autograd_fallback import set_autograd_fallback_mode as _set_autograd_fallback_mode
from .._tensor import Tensor, functions
from .._tensor.dispatch.batched_tensor import BatchedTensor, make_batched
from .._tensor.memory.storage import StorageBase
from .._tensor.shape.lazy_clones import identity, is_lazy
from ..amp import state as autocast_state
from ..amp.state import _is_any_autocast_enabled
from ..amp.state import is_autocast_available as _is_autocast_available
from ..backends.bit_views import bits_of, toggle
from ..backends.numpy.memory import address, owner
from ..func.batches import _add_batch_dim, _remove_batch_dim
from ..modes import active_transforms, forward_mode
from ..nn import functional
from ..switches import get_default_device
from ..switches import get_fill_uninitialized_memory as _get_deterministic_fill_uninitialized_memory
from ..switches import set_fill_uninitialized_memory as _set_deterministic_fill_uninitialized_memory
from .dispatch_keys import DispatchKey, DispatchKeySet, ExcludeDispatchKeyGuard, _ExcludeDispatchKeyGuard
from .left_out import LeftOut, refusing_class, refusing_function

_TORCHSCRIPT = "flambeau has no TorchScript"


def _log_api_usage_once(event: str) -> None:
    """Report the use of a function to PyTorch's developers; no effect."""


def _get_default_device() -> str:
    """The type of the device of tensors created without `device=`."""
    return str(get_default_device().type)


def _is_tracing() -> bool:
    """Whether a trace of a TorchScript graph is running."""
    scripting = sys.modules.get(f"{__package__.partition('.')[0]}.jit.scripting")
    return scripting is not None and bool(scripting.is_tracing())


def _get_tracing_state() -> Any:
    """The state of the trace of a graph that is running; None outside of one."""
    scripting = sys.modules.get(f"{__package__.rpartition('.')[0]}.jit.scripting")
    return scripting.tracing_state[0] if scripting is not None else None


def _get_privateuse1_backend_name() -> str:
    return "privateuseone"


def _get_accelerator(check: bool | None = None) -> devices.device:
    return devices.device("cpu")


def _is_alias_of(first: Any, second: Any) -> bool:
    """Whether two tensors share their storage; a container shares none."""
    if not (isinstance(first, Tensor) and isinstance(second, Tensor)):
        return False
    return address(owner(first._array)) == address(owner(second._array))


def _is_cow_tensor(tensor: Tensor) -> bool:
    """Whether the storage of a tensor shares memory with its lazy clones, until it is written to."""
    return is_lazy(tensor._array)


def _data_address(tensor: Tensor) -> int:
    """The address of the first element; a storage that is shared stays so."""
    return address(tensor._array)


def _storage_address(tensor: Tensor) -> int:
    """What identifies the storage of a tensor."""
    return identity(tensor._array)


_storage_id = _storage_address


class _WeakTensorRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = weakref.ref(tensor)

    def expired(self) -> bool:
        """Whether the tensor is gone."""
        return self._tensor() is None


def _set_fwd_grad_enabled(mode: bool) -> None:
    """Propagate tangents from here on, or do not."""
    forward_mode.set(mode)


def _is_fwd_grad_enabled() -> bool:
    """Whether tangents are propagated."""
    return forward_mode.get()


def _get_all_dtypes() -> list[Any]:
    """All dtypes."""
    return [*dtypes.ALL, *dtypes.WITHOUT_DATA]


def _set_conj(tensor: Tensor, value: bool) -> None:
    """Set the conjugate bit of a tensor; a real tensor has none."""
    if tensor._array.dtype.kind == "c" and bits_of(tensor._array)[0] != value:
        tensor._array = toggle(tensor._array, conjugate=True)


def _set_neg(tensor: Tensor, value: bool) -> None:
    """Set the negative bit of a tensor."""
    if bits_of(tensor._array)[1] != value:
        tensor._array = toggle(tensor._array, negative=True)


def _warn() -> None:
    warnings.warn("Test message for TORCH_WARN", UserWarning, stacklevel=2)


def _warn_deprecation() -> None:
    warnings.warn("Test message for TORCH_WARN_DEPRECATION", DeprecationWarning, stacklevel=2)


def _are_functorch_transforms_active() -> bool:
    return bool(active_transforms[0])


def _jit_can_fuse_on_cpu() -> bool:
    return False


_jit_can_fuse_on_gpu = _jit_texpr_fuser_enabled = _jit_can_fuse_on_cpu


def _no_effect(*args: Any, **kwargs: Any) -> bool:
    """Switch a part of TorchScript; no effect."""
    return False


(_jit_override_can_fuse_on_cpu, _jit_override_can_fuse_on_gpu, _jit_set_nvfuser_enabled, _jit_set_nvfuser_guard_mode,
 _jit_set_profiling_executor, _jit_set_profiling_mode, _jit_set_texpr_fuser_enabled, _jit_set_bailout_depth,
 _jit_set_num_profiled_runs, _jit_set_autocast_mode, _set_graph_executor_optimize, _debug_set_fusion_group_inlining,
 _debug_set_autodiff_subgraph_inlining, _jit_set_inline_everything_mode) = (_no_effect,) * 14


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """The arguments of `Tensor.to`: device, dtype, non_blocking, memory_format.

    Raises:
        TypeError: no such arguments.
    """
    from ..nn.modules.base.conversion import _parse_to as parse

    return parse(args, kwargs)


_IN_PLACE = ("hardsigmoid_", "hardswish_", "hardtanh_", "leaky_relu_", "mish_", "silu_")


def _gelu_(input: Tensor, *, approximate: str = "none") -> Tensor:
    return input.copy_(functions.gelu(input, approximate=approximate))


def _relu6_(input: Tensor) -> Tensor:
    return functional.relu6(input, inplace=True)


class _NeuralFunctions(ModuleType):
    """`torch._C._nn`: functions of `torch.nn.functional`, and in-place activations."""

    _parse_to = staticmethod(_parse_to)
    gelu_, relu6_ = staticmethod(_gelu_), staticmethod(_relu6_)

    def __getattr__(self, name: str) -> Any:
        name = {"log_sigmoid": "logsigmoid"}.get(name, name)
        if not name.startswith("__") and name != "elu_" and hasattr(functional, name):
            return getattr(functional, name)
        if name in _IN_PLACE:
            return getattr(functions, name)
        if not name.startswith("__"):
            from .neural_functions import FUNCTIONS

            if name in FUNCTIONS:
                return FUNCTIONS[name]
        raise AttributeError(f"module 'torch._C._nn' has no attribute '{name}'")


class _PrefixedFunctions(ModuleType):
    """`torch._C._linalg` and the like: the functions of a namespace with its name as prefix, `linalg_norm`."""

    def __getattr__(self, name: str) -> Any:
        prefix = self.__name__.rpartition("_")[2] + "_"
        if name.startswith(prefix):
            module = importlib.import_module(f"..{prefix[:-1]}", __package__)
            if hasattr(module, name.removeprefix(prefix)):
                return getattr(module, name.removeprefix(prefix))
        raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")


_nn = _NeuralFunctions("torch._C._nn")
_linalg, _fft, _special = (_PrefixedFunctions(f"torch._C.{name}") for name in ("_linalg", "_fft", "_special"))
_VariableFunctions: Any = None


def is_batchedtensor(x: Any) -> bool:
    """Whether a tensor is one of a batch of `vmap`."""
    return isinstance(x, BatchedTensor)


def get_unwrapped(x: Tensor) -> Tensor:
    """The value of a batched tensor outside its innermost level, its batch dimension first.

    Raises:
        RuntimeError: the tensor is not batched (PyTorch's text).
    """
    if not isinstance(x, BatchedTensor):
        raise RuntimeError("No wrappers present!")
    return make_batched(x._value, x._levels[:-1])


def maybe_get_level(x: Tensor) -> int:
    """The number of a batched tensor's innermost level; -1: the tensor is not batched."""
    return x._levels[-1].depth if isinstance(x, BatchedTensor) else -1


def maybe_get_bdim(x: Tensor) -> int:
    """The batch dimension of a batched tensor's value; -1: the tensor is not batched."""
    return 0 if isinstance(x, BatchedTensor) else -1


_vmap_fallback = {"enabled": True, "warning_enabled": True}  # switches without effect: no operator runs in a loop


def _is_vmap_fallback_enabled() -> bool:
    """Whether operators without a batching rule may run in a loop."""
    return _vmap_fallback["enabled"]


def _set_vmap_fallback_enabled(enabled: bool) -> None:
    _vmap_fallback["enabled"] = enabled


def _is_vmap_fallback_warning_enabled() -> bool:
    """Whether operators that run in a loop give a warning."""
    return _vmap_fallback["warning_enabled"]


def _set_vmap_fallback_warning_enabled(enabled: bool) -> None:
    _vmap_fallback["warning_enabled"] = enabled


_functorch = LeftOut("torch._C._functorch", "the interpreters of transforms are internal to flambeau",
                     functions="_vmap_increment_nesting _vmap_decrement_nesting _unwrap_for_grad _wrap_for_grad",
                     classes="CInterpreter TransformType",
                     values={"is_batchedtensor": is_batchedtensor, "get_unwrapped": get_unwrapped,
                             "maybe_get_level": maybe_get_level, "maybe_get_bdim": maybe_get_bdim,
                             "_is_vmap_fallback_enabled": _is_vmap_fallback_enabled,
                             "_set_vmap_fallback_enabled": _set_vmap_fallback_enabled,
                             "_is_vmap_fallback_warning_enabled": _is_vmap_fallback_warning_enabled,
                             "_set_vmap_fallback_warning_enabled": _set_vmap_fallback_warning_enabled,
                             "_add_batch_dim": _add_batch_dim, "_remove_batch_dim": _remove_batch_dim})
_distributed_rpc = LeftOut("torch._C._distributed_rpc", "flambeau has no remote calls",
                           values={"_is_current_rpc_agent_set": _jit_can_fuse_on_cpu})
#: classes of TorchScript, which programs name in annotations and `isinstance`
SCRIPT_CLASSES = """
    AliasDb ArgumentSpec AwaitType Block BufferDict CallStack Capsule ClassType Code CompilationUnit
    CompleteArgumentSpec ConcreteModuleType ConcreteModuleTypeBuilder DeepCopyMemoTable DeserializationStorageContext
    EnumType ErrorReport ExecutionPlan Gradient Graph GraphExecutorState IODescriptor InterfaceType
    LiteScriptModule LockingLogger LoggerBase ModuleDict Node NoopLogger OperatorInfo ParameterDict RRefType
    ScriptClass ScriptClassFunction ScriptDict ScriptDictIterator ScriptDictKeyIterator ScriptFunction ScriptList
    ScriptListIterator ScriptMethod ScriptModule ScriptModuleSerializer ScriptObject ScriptObjectProperty
    SerializationStorageContext StaticModule SymBoolType SymIntType TracingState UnionType Use Value
""".split()  # noqa: SIM905
#: their modules in PyTorch where it is not `torch`
_SCRIPT_MODULES = {"CompilationUnit": "torch.jit", "ScriptFunction": "torch.jit", "LoggerBase": "torch._C"}
vars().update({_name: refusing_class(f"{_SCRIPT_MODULES.get(_name, 'torch')}.{_name}", _TORCHSCRIPT)
               for _name in SCRIPT_CLASSES})
#: names of `dispatcher`, beside those that start with `_dispatch_`
_OF_DISPATCHER = frozenset(("_infer_size", "_jit_get_all_schemas", "_jit_get_schemas_for_operator", "parse_schema"))
#: names of `torch._C` that are defined elsewhere
_DEFINED_IN = {"FileCheck": "testing.file_check", "FunctionSchema": "ops.schemas", "Argument": "ops.schemas",
               **dict.fromkeys(("_SchemaInfo", "_SchemaArgument", "_SchemaArgType", "_overlaps"),
                               "environment.schema_info")}
_jit_script_compile = refusing_function("torch._C._jit_script_compile", _TORCHSCRIPT)


def __getattr__(name: str) -> Any:
    if name == "_distributed_c10d":
        from ..c10d import extension

        return extension
    if name in _DEFINED_IN:
        module = importlib.import_module(f"{__package__.rpartition('.')[0]}.{_DEFINED_IN[name]}")
        return getattr(module, name.lstrip("_"))
    if name == "_profiler":
        from . import profiler_extension

        return profiler_extension
    if name == "_autograd":
        from ..autograd import kineto_events

        return kineto_events
    if name == "_AutoDispatchBelowAutograd":
        from .._library.kernels import _AutoDispatchBelowAutograd

        return _AutoDispatchBelowAutograd
    if name in ("_jit_try_infer_type", "InferredType"):
        from . import script_inference

        return getattr(script_inference, name)
    if name.startswith("_dispatch_") or name in _OF_DISPATCHER:
        from . import dispatcher

        if hasattr(dispatcher, name):
            return getattr(dispatcher, name)
    if "autocast" in name and hasattr(autocast_state, name):
        return getattr(autocast_state, name)
    raise AttributeError(f"module 'torch._C' has no attribute '{name}'")


__all__ = [
    "DispatchKey",
    "DispatchKeySet",
    "ExcludeDispatchKeyGuard",
    "StorageBase",
    "_ExcludeDispatchKeyGuard",
    "_get_autograd_fallback_mode",
    "_get_default_device",
    "_get_deterministic_fill_uninitialized_memory",
    "_is_any_autocast_enabled",
    "_is_autocast_available",
    "_set_autograd_fallback_mode",
    "_set_deterministic_fill_uninitialized_memory",
]
