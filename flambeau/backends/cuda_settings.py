"""`torch.backends.cuda`'s settings of NVIDIA's libraries: they are kept, and where CUDA is needed refused."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from ..modes import float32_precision, float32_precision_observers
from ..settings import Settings
from .written_settings import written

_NO_CUFFT = ("Cannot access cuFFT plan cache without ATen_cuda library. PyTorch splits its backend into two shared "
             "libraries: a CPU library and a CUDA library; this error has occurred because you are trying to use some "
             "CUDA functionality, but the CUDA library has not been loaded by the dynamic linker for some reason.  The "
             "CUDA library MUST be loaded, EVEN IF you don't directly use any symbols from the CUDA library! One "
             "common culprit is a lack of -Wl,--no-as-needed in your link arguments; many dynamic linkers will delete "
             "dynamic library dependencies if you don't depend on any of their symbols.  You can check if this has "
             "occurred by using ldd on your binary to see if there is a dependency on *_cuda.so library.")


class _Backend(enum.Enum):
    """The base of the enumerations of libraries."""

    def __int__(self) -> int:
        return int(self.value)


_enumeration: Any = _Backend
_LinalgBackend = _enumeration("_LinalgBackend", "Default Cusolver Magma", start=0)
_BlasBackend = _enumeration("_BlasBackend", "Default Cublas Cublaslt Ck", start=0)
_ROCmFABackend = _enumeration("_ROCmFABackend", "Default AOTriton Ck", start=0)


def _preference(kind: Any, names: Mapping[str, Any], missing: Mapping[Any, str], fallback: Any,
                unknown_type: Callable[[str], Exception]) -> Callable[..., Any]:
    """A function that reads the preferred library, and sets it if one is given.

    Args:
        kind: the enumeration of libraries.
        names: their names in calls.
        missing: libraries that are refused -> what their name is in the error.
        fallback: what the default one is read as.
        unknown_type: the error of an argument of another type.
    """
    state = [kind.Default]
    choices = f"Unknown input value. Choose from: {', '.join(names)}."

    def preferred(backend: Any = None) -> Any:
        """The library that is preferred on a GPU.

        Args:
            backend: the name of a library, or a member of the enumeration, to be preferred from now on.

        Raises:
            RuntimeError: no such library, or PyTorch's CPU build lacks it.
        """
        if isinstance(backend, str):
            if backend not in names:
                raise RuntimeError(choices)
            backend = names[backend]
        elif backend is not None and not isinstance(backend, kind):
            raise unknown_type(choices)
        if backend in missing:
            name = missing[backend]
            raise RuntimeError(f"Cannot set preferred backend to {name} if PyTorch has not been compiled with {name}.")
        if backend is not None:
            state[0] = backend
        return fallback if state[0] is kind.Default else state[0]

    return preferred


def _of_unknown_type(choices: str) -> Exception:
    return RuntimeError("Unknown input value type.")


_BLAS = {"default": _BlasBackend.Default, "cublas": _BlasBackend.Cublas, "hipblas": _BlasBackend.Cublas,
         "cublaslt": _BlasBackend.Cublaslt, "hipblaslt": _BlasBackend.Cublaslt, "ck": _BlasBackend.Ck}
preferred_linalg_library = _preference(
    _LinalgBackend, {"default": _LinalgBackend.Default, "cusolver": _LinalgBackend.Cusolver,
                     "magma": _LinalgBackend.Magma},
    {_LinalgBackend.Cusolver: "cuSOLVER", _LinalgBackend.Magma: "MAGMA"}, _LinalgBackend.Default, _of_unknown_type)
preferred_blas_library = _preference(
    _BlasBackend, _BLAS, {_BlasBackend.Cublaslt: "cuBLASLt", _BlasBackend.Ck: "CK"}, _BlasBackend.Cublas,
    _of_unknown_type)
preferred_rocm_fa_library = _preference(
    _ROCmFABackend, {"default": _ROCmFABackend.Default, "aotriton": _ROCmFABackend.AOTriton, "ck": _ROCmFABackend.Ck},
    {}, _ROCmFABackend.Default, ValueError)


def _without_extension(name: str) -> NoReturn:
    raise AttributeError(f"module 'torch._C' has no attribute '{name}'")


def cublas_workspace_size(size: int | None = None) -> int:
    """The bytes of cuBLAS's memory, which the CPU build of PyTorch does not know either.

    Raises:
        AttributeError: always.
    """
    _without_extension("_cuda_getCublasWorkspaceSize" if size is None else "_cuda_setCublasWorkspaceSize")


def cublaslt_workspace_size(size: int | None = None) -> int:
    """The bytes of cuBLASLt's memory, which the CPU build of PyTorch does not know either.

    Raises:
        AttributeError: always.
    """
    _without_extension("_cuda_getCublasLtWorkspaceSize" if size is None else "_cuda_setCublasLtWorkspaceSize")


def blas_workspace_size(size: int | None = None, backend: Any = None) -> int:
    """The bytes of a library's memory.

    Raises:
        RuntimeError: no such library, or one without such memory.
        AttributeError: otherwise.
    """
    if isinstance(backend, str):
        if backend not in _BLAS:
            raise RuntimeError(f"Unknown backend string. Choose from: {', '.join(_BLAS)}.")
        backend = _BLAS[backend]
    elif backend is None:
        backend = preferred_blas_library()
    elif not isinstance(backend, _BlasBackend):
        raise RuntimeError("Unknown backend type.")
    if backend is _BlasBackend.Ck:
        raise RuntimeError("CK backend does not use a workspace.")
    return (cublaslt_workspace_size if backend is _BlasBackend.Cublaslt else cublas_workspace_size)(size)


class SDPAParams:
    """The arguments of `scaled_dot_product_attention`, of which kernels of a GPU may be asked.

    Args:
        query, key, value: tensors.
        attn_mask: a tensor or None.
        dropout: the probability.
        is_causal, enable_gqa: the flags of the same names.
    """

    __slots__ = ("attn_mask", "dropout", "enable_gqa", "is_causal", "key", "query", "value")

    def __init__(self, query: Any, key: Any, value: Any, attn_mask: Any, dropout: float, is_causal: bool,
                 enable_gqa: bool, /) -> None:
        self.query, self.key, self.value, self.attn_mask = query, key, value, attn_mask
        self.dropout, self.is_causal, self.enable_gqa = float(dropout), is_causal, enable_gqa


def _never(params: SDPAParams, debug: bool = False) -> bool:
    """Whether a kernel of a GPU can be used: False."""
    return False


_math_reduction = [False]


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Set whether attention may sum in narrow dtypes; no effect."""
    _math_reduction[0] = bool(enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Whether attention may sum in narrow dtypes."""
    return _math_reduction[0]


class cuFFTPlanCacheAttrContextProp:
    """A property of a cache of plans, which needs CUDA."""

    def __init__(self, getter: Callable[[int], Any], setter: Any) -> None:
        self.getter, self.setter = getter, setter

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else self.getter(instance.device_index)

    def __set__(self, instance: Any, value: Any) -> None:
        if isinstance(self.setter, str):
            raise RuntimeError(self.setter)
        self.setter(instance.device_index, value)


def _plans(index: int) -> Any:
    """The cache of plans of a device.

    Raises:
        RuntimeError: there are no CUDA devices, or none of this number (PyTorch's texts).
    """
    from .cuda_devices import current_runtime

    runtime = current_runtime()
    if runtime is None:
        raise RuntimeError(_NO_CUFFT)
    if not 0 <= index < runtime.count:
        raise RuntimeError(_wrong_index(index, runtime.count))
    from .cuda_devices.cufft import plan_cache

    return plan_cache(runtime, index)


def _wrong_index(index: int, count: int) -> str:
    return f"cufft_plan_cache: expected 0 <= device index < {count}, but got device with index {index}"


class cuFFTPlanCache:
    """The plans of Fourier transforms of a GPU.

    Args:
        device_index: the number of the device.
    """

    def __init__(self, device_index: int) -> None:
        self.device_index = device_index

    size = cuFFTPlanCacheAttrContextProp(
        lambda index: len(_plans(index)),
        ".size is a read-only property showing the number of plans currently in the cache. To change the cache "
        "capacity, set cufft_plan_cache.max_size.")
    max_size = cuFFTPlanCacheAttrContextProp(lambda index: _plans(index).max_size,
                                             lambda index, value: _plans(index).resize(value))

    def clear(self) -> None:
        """Forget the plans.

        Raises:
            RuntimeError: there are no CUDA devices (PyTorch's text).
        """
        _plans(self.device_index).clear()


class cuFFTPlanCacheManager:
    """The caches of plans by device; an attribute is that of the current device."""

    def __getitem__(self, device: Any) -> cuFFTPlanCache:
        from .cuda_devices import current_runtime

        runtime = current_runtime()
        index = device if isinstance(device, int) else getattr(device, "index", None)
        if index is None:
            index = 0 if runtime is None else runtime.current_device()
        count = 0 if runtime is None else runtime.count
        if not 0 <= index < count:
            raise RuntimeError(_wrong_index(index, count))
        return cuFFTPlanCache(index)

    def _current(self) -> cuFFTPlanCache:
        from .cuda_devices import current_runtime

        runtime = current_runtime()
        if runtime is None:
            raise AssertionError("Torch not compiled with CUDA enabled")
        return self[runtime.current_device()]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._current(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._current(), name, value)


class cuBLASModule(Settings):
    """The settings of matrix products on GPUs: `allow_tf32`, of which `fp32_precision` is the newer form.

    `set_float32_matmul_precision` sets both, and is set by `allow_tf32`.
    """

    def __init__(self) -> None:
        super().__init__("torch.backends.cuda.matmul", {
            "allow_tf32": False, "allow_fp16_reduced_precision_reduction": True,
            "allow_bf16_reduced_precision_reduction": True, "allow_fp16_accumulation": False,
            "fp32_precision": "none"}, self._written)
        if float32_precision[0] != "highest":
            self._follow()
        float32_precision_observers.append(self._follow)

    def _follow(self) -> None:
        """Take over what `set_float32_matmul_precision` has set."""
        tf32 = float32_precision[0] != "highest"
        self._values.update(allow_tf32=tf32, fp32_precision="tf32" if tf32 else "ieee")
        written("allow_tf32", tf32)

    def _written(self, name: str, value: Any) -> None:
        if name == "allow_tf32":
            self._values["fp32_precision"] = "tf32" if value else "ieee"
            float32_precision[0] = "high" if value else "highest"
        elif name == "fp32_precision":
            self._values["allow_tf32"] = value == "tf32"
        written(name, value)


#: names of `torch.backends.cuda`
NAMES: dict[str, Any] = {
    **{each.__name__: each for each in (
        SDPAParams, allow_fp16_bf16_reduction_math_sdp, blas_workspace_size, cuBLASModule, cuFFTPlanCache,
        cuFFTPlanCacheAttrContextProp, cuFFTPlanCacheManager, cublas_workspace_size, cublaslt_workspace_size,
        fp16_bf16_reduction_math_sdp_allowed)},
    "can_use_cudnn_attention": _never, "can_use_efficient_attention": _never, "can_use_flash_attention": _never,
    "cufft_plan_cache": cuFFTPlanCacheManager(), "is_ck_sdpa_available": lambda: False, "matmul": cuBLASModule(),
    "preferred_blas_library": preferred_blas_library, "preferred_linalg_library": preferred_linalg_library,
    "preferred_rocm_fa_library": preferred_rocm_fa_library,
}

__all__ = ["NAMES"]
