"""`torch.backends`: PyTorch's settings of its libraries. Of these, CUDA devices use cuBLAS and cuDNN.

Each library is a module of settings and functions: `cudnn.deterministic = True`, `cudnn.flags(...)`.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from ..devices import current_cuda
from ..modes import float32_precision, float32_precision_observers
from ..settings import Settings
from .attention_kernels import enabled as enabled_kernels
from .attention_kernels import set_enabled
from .cuda_settings import NAMES as _CUDA_NAMES
from .written_settings import written


def _no() -> bool:
    return False


def _none() -> None:
    return None


class Library(Settings):
    """The module of a library whose settings can be frozen by `disable_global_flags`."""

    def __setattr__(self, name: str, value: Any) -> None:
        if _frozen[0] and name in self._values:
            raise RuntimeError(f"not allowed to set {self.__name__} flags after disable_global_flags; please use "
                               "flags() context manager instead")
        super().__setattr__(name, value)


_frozen = [False]


def disable_global_flags() -> None:
    """Let the libraries' settings be changed by `flags()` only."""
    _frozen[0] = True


def flags_frozen() -> bool:
    """Whether the libraries' settings can be changed by `flags()` only."""
    return _frozen[0]


@contextmanager
def _unfrozen() -> Iterator[None]:
    """Allow writes to settings in a block."""
    before, _frozen[0] = _frozen[0], False
    try:
        yield
    finally:
        _frozen[0] = before


def _library(name: str, values: dict[str, Any] | None = None, /, **functions: Any) -> Settings:
    """The module of a library, with settings and functions."""
    module = Settings(f"torch.backends.{name}", values or {}, written if name.startswith("cudnn") else None)
    vars(module).update(functions)
    return module


def _flags(module: Settings, defaults: dict[str, Any]) -> tuple[Callable[..., tuple[Any, ...]], Callable[..., Any]]:
    """`set_flags`, which returns the previous values, and `flags`, a context manager, of a module of settings."""
    names = list(defaults)
    signature = inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
                                   for name, default in defaults.items()])

    def set_flags(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        before = tuple(getattr(module, name) for name in names)
        given = {name.lstrip("_"): value for name, value in kwargs.items()}
        for name, value in signature.bind_partial(*args, **given).arguments.items():
            if value is not None:
                setattr(module, name, value)
        return before

    @contextmanager
    def flags(*args: Any, **kwargs: Any) -> Iterator[None]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        with _unfrozen():
            before = set_flags(*bound.args)
        try:
            yield
        finally:
            with _unfrozen():
                module.load_config(dict(zip(names, before, strict=True)))

    set_flags.__doc__ = "Write settings by position or by name with a leading `_`; None leaves a setting unchanged."
    flags.__doc__ = "Settings for a block; those that are not given have the defaults of the signature."
    flags.__signature__ = signature  # type: ignore[attr-defined]
    return set_flags, flags


def _switches(name: str, values: dict[str, Any], defaults: dict[str, Any], /, **functions: Any) -> Settings:
    """The module of a library with `set_flags` and `flags`; `defaults` are those of `flags`."""
    module = Library(f"torch.backends.{name}", values, written if name in ("cudnn", "generic") else None)
    vars(module).update(functions)
    vars(module)["set_flags"], vars(module)["flags"] = _flags(module, defaults)
    return module


def _cudnn_library() -> Any:
    """cuDNN of the CUDA devices; None where there is none."""
    if current_cuda() is None:
        return None
    from .cuda_devices import current_runtime

    return current_runtime().convolutions


def _cudnn_is_available() -> bool:
    """Whether there is a CUDA device with cuDNN."""
    return _cudnn_library() is not None


def _cudnn_version() -> int | None:
    """The version of cuDNN, 10000 for a major version and 100 for a minor one; None where there is none."""
    library = _cudnn_library()
    return None if library is None else library.version


def _cudnn_is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN takes a tensor: by its device and dtype, and if it is enabled."""
    return bool(cudnn.enabled) and tensor.device.type == "cuda" and tensor.dtype.name in (
        "float16", "float32", "float64") and _cudnn_is_available()


cudnn = _switches(
    "cudnn", {"enabled": True, "benchmark": False, "benchmark_limit": None, "deterministic": False, "allow_tf32": True,
              "fp32_precision": "none", "depthwise_kernel": "auto"},
    {"enabled": False, "benchmark": False, "benchmark_limit": None, "deterministic": False, "allow_tf32": True,
     "fp32_precision": "none", "depthwise_kernel": "auto"},
    is_available=_cudnn_is_available, version=_cudnn_version, is_acceptable=_cudnn_is_acceptable)
vars(cudnn).update({part: _library(f"cudnn.{part}", {"fp32_precision": "tf32"}) for part in ("conv", "rnn")})
mkldnn = _switches(
    "mkldnn", {"enabled": True, "deterministic": False, "allow_tf32": None, "fp32_precision": "none"},
    {"enabled": False, "deterministic": False, "allow_tf32": True, "fp32_precision": "none"}, is_available=_no)
vars(mkldnn).update({part: _library(f"mkldnn.{part}", {"fp32_precision": "none"})
                     for part in ("conv", "matmul", "rnn")})


def _follow_precision() -> None:
    """Take over what `set_float32_matmul_precision` has set."""
    mkldnn.matmul.fp32_precision = {"highest": "ieee", "high": "tf32", "medium": "bf16"}[float32_precision[0]]


float32_precision_observers.append(_follow_precision)
miopen = _switches("miopen", {"immediate": False}, {"immediate": False})
xnnpack = _library("xnnpack", {"enabled": False})
generic = _switches("generic", {"fp32_precision": "none"}, {"fp32_precision": "none"})
nnpack = _switches("nnpack", {"enabled": True}, {"enabled": False}, is_available=_no)
opt_einsum = _library("opt_einsum", {"enabled": False, "strategy": None}, is_available=_no, get_opt_einsum=_none)
openmp = _library("openmp", is_available=_no)


def _without_mps(*args: Any) -> Any:
    raise RuntimeError("Cannot execute isOnMacOSorNewer() without MPS backend.")


def _get_core_count() -> int:
    raise AttributeError("module 'torch._C' has no attribute '_mps_get_core_count'")


def _get_name() -> str:
    raise AttributeError("module 'torch._C' has no attribute '_mps_get_name'")


mps = _library("mps", is_available=_no, is_built=_no, is_macos_or_newer=_without_mps, is_macos13_or_newer=_without_mps,
               get_core_count=_get_core_count, get_name=_get_name)
kleidiai = _library("kleidiai", is_available=_no)
cusparselt = _library("cusparselt", is_available=_no, version=_none, get_max_alg_id=_none)
quantized = _library("quantized", {"engine": "none", "supported_engines": ["none"]})


class verbose:
    """Context manager of MKL's verbose mode; it has no effect."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *_: object) -> None:
        pass


mkl = _library("mkl", is_available=_no, verbose=verbose, VERBOSE_OFF=0, VERBOSE_ON=1)


def _capability() -> str:
    """The vector instruction set that kernels use, by PyTorch's name."""
    from .. import codegen

    if not codegen.available():
        return "DEFAULT"
    from ..runtime import target

    return {512: "AVX512", 256: "AVX2"}.get(target.host().vector_bits, "DEFAULT")


cpu = _library("cpu", get_cpu_capability=_capability)


def _switch(name: str, value: bool) -> tuple[Callable[[], bool], Callable[[bool], None]]:
    """Functions that read and write a bool."""
    state = [value]

    def read() -> bool:
        return state[0]

    def write(value: bool) -> None:
        state[0] = bool(value)

    read.__name__, write.__name__ = name, f"set_{name}"
    return read, write


def _kernel_switch(name: str) -> tuple[Callable[[], bool], Callable[[bool], None]]:
    """Functions that read and write whether an attention kernel is enabled."""
    def read() -> bool:
        return enabled_kernels[name]

    def write(enabled: bool) -> None:
        set_enabled(name, enabled)

    read.__name__, write.__name__ = f"{name}_sdp_enabled", f"enable_{name}_sdp"
    return read, write


_sdp = {name: _kernel_switch(name) for name in ("flash", "math", "mem_efficient", "cudnn")}


@contextmanager
def sdp_kernel(enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True,
               enable_cudnn: bool = True) -> Iterator[None]:
    """Deprecated selection of attention kernels for a block; it has no effect."""
    warnings.warn("`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be "
                  "removed. Please see `torch.nn.attention.sdpa_kernel()` for the new context manager, with updated "
                  "signature.", FutureWarning, stacklevel=3)
    requested = {"flash": enable_flash, "math": enable_math, "mem_efficient": enable_mem_efficient,
                 "cudnn": enable_cudnn}
    before = {name: read() for name, (read, _) in _sdp.items()}
    try:
        for name, value in requested.items():
            _sdp[name][1](value)
        yield
    finally:
        for name, value in before.items():
            _sdp[name][1](value)


def _has_cuda() -> bool:
    """Whether there is a CUDA device."""
    return current_cuda() is not None


cuda = _library("cuda", is_built=_has_cuda, is_flash_attention_available=_no, sdp_kernel=sdp_kernel,
             **{f"{name}_sdp_enabled": read for name, (read, _) in _sdp.items()},
             **{f"enable_{name}_sdp": write for name, (_, write) in _sdp.items()})
vars(cuda).update(_CUDA_NAMES)
mha_enabled, set_mha = _switch("fastpath_enabled", True)
mha = _library("mha", get_fastpath_enabled=mha_enabled, set_fastpath_enabled=set_mha)

#: the modules by name
MODULES: dict[str, ModuleType] = {each.__name__.rpartition(".")[2]: each for each in (
    cpu, cuda, cudnn, cusparselt, kleidiai, mha, miopen, mkl, mkldnn, mps, nnpack, openmp, opt_einsum, quantized,
    xnnpack)}
#: names of `torch.backends` itself
NAMES: dict[str, Any] = {"disable_global_flags": disable_global_flags, "flags_frozen": flags_frozen,
                         **{name: vars(generic)[name] for name in ("flags", "set_flags")}}

__all__ = ["MODULES", "NAMES"]
