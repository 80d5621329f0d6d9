"""`torch.cuda`: the CUDA devices. Without one it answers that there is none, and refuses what needs one.

What is defined here is that of a build of PyTorch without CUDA; `present` has the names that take its place while
`backends.cuda_devices` has a runtime.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from typing import Any

from .. import config, dtypes
from ..accelerators.absent import dummy_class, refusing, shared_names
from ..backends.cuda_devices import current_runtime, observe
from ..backends.cuda_devices.errors import AcceleratorError, OutOfMemoryError

_NAMES = shared_names("cuda", "torch.cuda", RuntimeError)
globals().update(_NAMES)
_SUBMODULES = ("amp", "graphs", "jiterator", "memory", "nccl", "nvtx", "profiler", "random", "sparse", "streams",
               "tunable")


def is_available() -> bool:
    """Whether a GPU is available: False.

    >>> import flambeau as torch
    >>> torch.cuda.is_available()
    False
    """
    return False


def device_count() -> int:
    """The number of GPUs: 0.

    >>> import flambeau as torch
    >>> torch.cuda.device_count()
    0
    """
    return 0


class CudaError(RuntimeError):
    """An error code of the CUDA runtime."""

    def __init__(self, code: int) -> None:
        super().__init__(f"({code})")


class DeferredCudaCallError(Exception):
    """An error in a call that waited for the initialization of CUDA."""


cudart = current_blas_handle = current_solver_handle = default_stream = ipc_collect = refusing(
    AssertionError, "Torch not compiled with CUDA enabled")
get_sync_debug_mode = set_sync_debug_mode = make_graphed_callables = cudart
caching_allocator_alloc = caching_allocator_delete = cudart
_no_set_device = refusing(AttributeError, "module 'torch._C' has no attribute '_cuda_setDevice'")
reset_peak_memory_stats = reset_max_memory_allocated = reset_max_memory_cached = refusing(
    AttributeError, "module 'torch._C' has no attribute '_cuda_resetPeakMemoryStats'")
reset_accumulated_memory_stats = refusing(
    AttributeError, "module 'torch._C' has no attribute '_cuda_resetAccumulatedMemoryStats'")
get_allocator_backend = refusing(AttributeError, "module 'torch._C' has no attribute '_cuda_getAllocatorBackend'")
memory_snapshot = refusing(AttributeError, "module 'torch._C' has no attribute '_cuda_memorySnapshot'")
memory_summary = refusing(KeyError, "allocated_bytes.all.current")
is_current_stream_capturing = refusing(
    RuntimeError, "Tried to instantiate dummy base class _cuda_isCurrentStreamCapturing")
graph_pool_handle = refusing(RuntimeError, "Tried to instantiate dummy base class _graph_pool_handle")
clock_rate = device_memory_used = memory_usage = power_draw = temperature = utilization = refusing(
    ModuleNotFoundError, "nvidia-ml-py does not seem to be installed or it can't be imported.")
memory_cached = max_memory_cached = _NAMES["memory_reserved"]
host_memory_stats, host_memory_stats_as_nested_dict = _NAMES["memory_stats"], _NAMES["memory_stats_as_nested_dict"]
has_half, has_magma = True, False
#: whether a device was initialized, and the calls that wait for it
_initialized: bool = False
_queued_calls: list[Any] = []


def set_device(device: Any) -> None:
    """Select a GPU; a negative index selects nothing.

    Raises:
        AttributeError: an index, as in a build of PyTorch without CUDA.
    """
    if _NAMES["_get_device_index"](device) >= 0:
        _no_set_device()


def _lazy_call(callable: Any, **kwargs: Any) -> None:
    """Call a function when CUDA is initialized, which does not happen."""


def list_gpu_processes(device: Any = None) -> str:
    """The processes on a GPU, which a library of NVIDIA's lists."""
    return "pynvml module not found, please install nvidia-ml-py"


def check_error(res: int) -> None:
    """Raise an error for a code of the CUDA runtime that is not success.

    Raises:
        CudaError: not 0.
    """
    if res:
        raise CudaError(res)


_NO_STREAMS = "torch.cuda.Stream requires CUDA support"
Stream = dummy_class("Stream", "torch.cuda.streams", _NO_STREAMS)
ExternalStream = dummy_class("ExternalStream", "torch.cuda.streams", _NO_STREAMS)
Event = dummy_class("Event", "torch.cuda.streams")
CUDAGraph = dummy_class("CUDAGraph", "torch.cuda.graphs")
graph = dummy_class("graph", "torch.cuda.graphs", _NO_STREAMS)
MemPool = dummy_class("MemPool", "torch.cuda.memory")
CUDAPluggableAllocator = dummy_class("CUDAPluggableAllocator", "torch.cuda.memory")


class _AbsentTensorType(type):
    """The class of `torch.cuda.FloatTensor` and its like: no tensor is an instance, and none can be made."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return False

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"type torch.cuda.{cls.__name__} not available. Torch not compiled with CUDA enabled.")


def _tensor_type(name: str, dtype: Any) -> type:
    return _AbsentTensorType(name, (), {"__module__": "torch.cuda", "dtype": dtype, "is_cuda": True,
                                        "__doc__": "A legacy tensor type of GPUs, which are absent."})


def _storage_type(name: str) -> type:
    def refuse(cls: type, *args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage "
            "class. This should only matter to you if you are using storages directly.  To access UntypedStorage "
            "directly, use tensor.untyped_storage() instead of tensor.storage()", UserWarning, stacklevel=2)
        raise AssertionError("Torch not compiled with CUDA enabled")

    constructors = {each: staticmethod(refusing(RuntimeError, f"{each}: Not available for CUDA storage"))
                    for each in ("from_buffer", "_new_with_weak_ptr", "_new_shared_filename")}
    return type(name, (), {"__new__": refuse, "__module__": "torch.cuda",
                           "__doc__": "A storage of GPUs, which are absent.", **constructors})


for _prefix, _dtype in (("BFloat16", dtypes.bfloat16), ("Bool", dtypes.bool_), ("Byte", dtypes.uint8),
                        ("Char", dtypes.int8), ("Double", dtypes.float64), ("Float", dtypes.float32),
                        ("Half", dtypes.float16), ("Int", dtypes.int32), ("Long", dtypes.int64),
                        ("Short", dtypes.int16)):
    globals()[f"{_prefix}Tensor"] = _tensor_type(f"{_prefix}Tensor", _dtype)
    globals()[f"{_prefix}Storage"] = _storage_type(f"{_prefix}Storage")


_absent: dict[str, Any] = {}


def _follow(runtime: Any) -> None:
    """Exchange the names with those of a present device, or back."""
    if not runtime and not _absent:
        return
    if runtime:
        present = importlib.import_module(f"{__name__}.present")
        new = present.NAMES | {"default_generators": present.default_generators()}
        if not _absent:
            _absent.update({name: globals().get(name) for name in new})
    else:
        new = dict(_absent)
        _absent.clear()
    for module in (sys.modules[__name__], *(sys.modules.get(f"{__name__}.{each}") for each in _SUBMODULES)):
        for name, value in new.items():
            if module is not None and (name in vars(module) or module is sys.modules[__name__]):
                setattr(module, name, value)


def _names_of_device(names: dict[str, Any]) -> dict[str, Any]:
    """Of the names of a module that is imported only now, those that a present device has replaced here."""
    return {name: globals()[name] for name in _absent if name in names}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{config.module_name}.cuda' has no attribute '{name}'")


__all__ = [
    "AcceleratorError",
    "CUDAGraph",
    "CUDAPluggableAllocator",
    "CudaError",
    "DeferredCudaCallError",
    "Event",
    "ExternalStream",
    "MemPool",
    "OutOfMemoryError",
    "Stream",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "check_error",
    "clock_rate",
    "cudart",
    "current_blas_handle",
    "default_stream",
    "device_count",
    "graph",
    "graph_pool_handle",
    "ipc_collect",
    "is_available",
    "list_gpu_processes",
    "memory_cached",
    "set_device",
    "utilization",
]
__all__ += [name for name in _NAMES if not name.startswith("_")]

if current_runtime() is not None:
    importlib.import_module(f"{__package__.partition('.')[0]}._tensor.accelerated")
observe(_follow)
